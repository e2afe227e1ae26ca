"""What the pydantic models of A2A 0.x say of credentials, and what their SDKs tell a caller who was not let in."""

from a2a import types
from a2a.client import A2AClientHTTPError

import plain


def security(card):
    """The schemes of the card by name, each as kind and detail, and which of them are enough."""
    schemes = {name: _kind_and_detail(scheme.root) for name, scheme in (card.security_schemes or {}).items()}
    return schemes, [list(requirement) for requirement in card.security or []]


def header(card, caller):
    """The header in which the card wants to see what the caller has."""
    scheme = card.security_schemes[caller.scheme].root
    if isinstance(scheme, types.APIKeySecurityScheme):
        return {scheme.name: caller.secret}
    return {'Authorization': f'Bearer {caller.secret}'}


async def shut_out(status, call):
    """The call must fail because of this HTTP status."""
    try:
        answer = await call
    except A2AClientHTTPError as error:
        plain.equal(f'the status ({error})', error.status_code, status)
        return
    raise AssertionError(f'wanted status {status}, got an answer: {answer!r}')


def _kind_and_detail(scheme):
    match scheme:
        case types.APIKeySecurityScheme():
            return 'apiKey', scheme.name
        case types.HTTPAuthSecurityScheme():
            return 'http', scheme.scheme
        case types.OAuth2SecurityScheme():
            flow = scheme.flows.authorization_code or scheme.flows.client_credentials
            return 'oauth2', flow and flow.token_url
    raise AssertionError(f'a scheme that no case knows: {scheme!r}')
