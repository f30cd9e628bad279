"""Routes of the pages about people and the program."""

from __future__ import annotations

from django.urls import path

from replicators import views
from replicators.audit_pages import audit

urlpatterns = [
    path("sign-in/", views.SignIn.as_view(), name="login"),
    path("sign-out/", views.SignOut.as_view(), name="logout"),
    path("account/", views.account, name="account"),
    path("account/password/", views.password, name="account-password"),
    path("account/theme/", views.theme, name="account-theme"),
    path("account/tokens/", views.token_new, name="token-new"),
    path("account/tokens/<int:pk>/revoke/", views.token_delete, name="token-revoke"),
    path("audit/", audit, name="audit"),
    path("api/", views.api_guide, name="api-guide"),
    path("styleguide/", views.styleguide, name="styleguide"),
]
