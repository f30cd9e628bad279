"""Who may call what: viewers read, editors also write, and makers of feeds write their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from replicators.models import ApiToken, Scope
from replicators.people import person
from replicators.permissions import NOT_YOURS, can_make, can_read_rows, can_view, can_write

if TYPE_CHECKING:
    from rest_framework.views import APIView  # DRF imports this module while it makes its own views

LOOKS_ONLY = "Your user may look, but not change anything. Ask for the group editor."


def require_scope(request: Request) -> None:
    """PermissionDenied where a token that may only read asks for more."""
    token = request.auth
    is_reading = isinstance(token, ApiToken) and token.scope == Scope.READ
    if is_reading and request.method not in SAFE_METHODS:
        raise PermissionDenied("This token may only read. Make one that may write, too.")


class SignedIn(BasePermission):
    """Allows signed-in users, for their own things."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not request.user.is_authenticated:
            return False
        require_scope(request)
        return True


class Administrator(BasePermission):
    """Allows superusers."""

    message = "This is for administrators."

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not person(request).is_superuser:
            return False
        require_scope(request)
        return True


class ViewOrEdit(BasePermission):
    """Reading needs the right to view, everything else the right to change what the address
    names."""

    message = LOOKS_ONLY

    def has_permission(self, request: Request, view: APIView) -> bool:
        user = request.user
        if not user.is_authenticated:
            return False
        require_scope(request)
        if request.method in SAFE_METHODS:
            return can_view(user)
        self.message = NOT_YOURS if can_make(user) else LOOKS_ONLY
        return can_write(user, request.resolver_match)


class ReadRows(BasePermission):
    """Allows those who may read rows of copied tables."""

    message = (
        "Your user may not read rows. An administrator can give it the permission "
        "`Can read rows of copied tables`."
    )

    def has_permission(self, request: Request, view: APIView) -> bool:
        user = request.user
        if not user.is_authenticated:
            return False
        require_scope(request)
        return can_view(user) and can_read_rows(user, request.resolver_match)
