"""Pages about people and the program itself: sign-in, account, API guide, style guide."""

from __future__ import annotations

import re
from typing import Any

from django.conf import settings
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.contrib.auth.views import LoginView, LogoutView, redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from replicators import accounts, throttle
from replicators.config import InvalidConfig
from replicators.models import ApiToken, Scope
from replicators.pages import go
from replicators.people import person
from replicators.templatetags.ui import THEME_COOKIE
from replicators.tokens import days_default, days_longest, token_create, token_revoke

_YEAR = 365 * 86400


class SignIn(LoginView):
    """The sign-in form, throttled."""

    template_name = "replicators/signin.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if throttle.is_throttled(*self._who()):
            form = self.get_form_class()(request)
            context = self.get_context_data(form=form, throttled=throttle.TEXT)
            response = self.render_to_response(context, status=429)
            response["Retry-After"] = str(throttle.WINDOW_SECONDS)
            return response
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        throttle.succeeded(*self._who())
        response = super().form_valid(form)
        accounts.signed_in(form.get_user())
        return response

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        throttle.failed(*self._who())
        accounts.sign_in_failed(self._who()[0])
        return self.render_to_response(self.get_context_data(form=form), status=422)

    def _who(self) -> tuple[str, str]:
        return self.request.POST.get("username", ""), throttle.address_of(self.request)


class SignOut(LogoutView):
    """Signs out: ends the session."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated:
            accounts.signed_out(person(request))
        return super().post(request, *args, **kwargs)


@login_not_required
@require_http_methods(["GET", "POST"])
def admin_login(request: HttpRequest) -> HttpResponse:
    """Replaces the administration's own sign-in form, which does not slow down guessing."""
    if request.user.is_authenticated:
        raise PermissionDenied
    return redirect_to_login(request.GET.get("next", reverse("admin:index")))


def _account(
    request: HttpRequest, *, status: int = 200, form: Any = None, **more: Any
) -> HttpResponse:
    user = person(request)
    context = {
        "section": "account",
        "form": form or PasswordChangeForm(user),
        "tokens": ApiToken.objects.filter(user=user),
        "groups": [g.name for g in user.groups.all()],
        "scopes": Scope.choices,
        "days": {"default": days_default(), "longest": days_longest()},
        "theme_chosen": request.COOKIES.get(THEME_COOKIE, ""),
        **more,
    }
    return render(request, "replicators/account.html", context, status=status)


@never_cache
@require_GET
def account(request: HttpRequest) -> HttpResponse:
    """Password, tokens, theme."""
    return _account(request)


@sensitive_post_parameters()
@require_POST
def password(request: HttpRequest) -> HttpResponse:
    """Change one's own password; the user stays signed in. The user's tokens end with the old
    password unless the box is ticked."""
    who = person(request).get_username(), throttle.address_of(request)
    form = PasswordChangeForm(person(request), request.POST)
    if throttle.is_throttled(*who):
        form.errors["old_password"] = form.error_class([throttle.TEXT])
        response = _account(request, form=form, status=429)
        response["Retry-After"] = str(throttle.WINDOW_SECONDS)
        return response
    if not form.is_valid():
        if "old_password" in form.errors:
            throttle.failed(*who)
        return _account(request, form=form, status=422)
    throttle.succeeded(*who)
    ended = accounts.password_change(form=form, keeps_tokens="keep_tokens" in request.POST)
    update_session_auth_hash(request, form.user)
    reported = f" {ended} token{'s' * (ended != 1)} ended with the old one." if ended else ""
    return go(request, "account", f"Your password is changed.{reported}")


@never_cache
@require_POST
def token_new(request: HttpRequest) -> HttpResponse:
    """Make a token. Only this one answer holds its text."""
    name, days = request.POST.get("name", ""), request.POST.get("days", "").strip()
    scope = request.POST.get("scope", Scope.WRITE)
    number = int(days) if re.fullmatch("[0-9]{1,6}", days) else -1
    try:
        token, text = token_create(
            user=person(request), name=name, days=number if days else None, scope=scope
        )
    except InvalidConfig as err:
        given = {"name": name, "days": days, "scope": scope}
        return _account(request, status=422, token_errors=err.errors, given=given)
    return _account(request, token_made=token, token_text=text)


@require_POST
def token_delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Revoke one's own token."""
    token = get_object_or_404(ApiToken, pk=pk, user=person(request))
    token_revoke(token=token)
    return go(request, "account", f"The token {token.name} is revoked.")


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Choose the theme: light, dark, or as the system says."""
    response = go(request, "account")
    chosen = request.POST.get("theme", "")
    if chosen in {"light", "dark"}:
        response.set_cookie(
            THEME_COOKIE, chosen, max_age=_YEAR, samesite="Lax", secure=settings.HTTPS
        )
    else:
        response.delete_cookie(THEME_COOKIE, samesite="Lax")
    return response


@require_GET
def api_guide(request: HttpRequest) -> HttpResponse:
    """How a program uses REST."""
    base = request.build_absolute_uri("/api/v1/")
    return render(request, "replicators/api_guide.html", {"section": "api", "base": base})


@require_http_methods(["GET"])
def styleguide(request: HttpRequest) -> HttpResponse:
    """Each component in each state; only with DEBUG."""
    if not settings.DEBUG:
        raise Http404
    problems = [
        {
            "code": "source:database-missing",
            "severity": "ERROR",
            "title": "Database missing",
            "message": "There is no database `shop` on the server.",
            "suggestion": "Check the database name.",
            "impact": "Nothing can be copied.",
        },
        {
            "code": "source:no-key",
            "severity": "WARNING",
            "title": "No key",
            "message": "Table `shop.page_views` has no primary key.",
            "suggestion": "Add a key, or accept that only inserts follow.",
        },
        {
            "code": "target:folder-made",
            "severity": "INFO",
            "title": "Folders are made",
            "message": "`/data/shop` is not there. It is made when the replicator starts.",
            "suggestion": "If it should be there already, check the spelling.",
        },
    ]
    context = {"forced_theme": request.GET.get("theme", ""), "problems": problems}
    return render(request, "replicators/styleguide.html", context)
