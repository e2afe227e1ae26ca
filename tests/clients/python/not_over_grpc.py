"""The cases that the suites leave out over gRPC, each with the reason. All others run through every binding."""

_CARD = 'a card is fetched with plain HTTP, whichever binding follows; the suites of the other bindings show it'

REASONS = {
    'cases.v0_3_only.the_card_is_also_where_older_versions_had_it': _CARD,
    'cases.v0_3_signing.the_sdk_verifies_the_card_of_sabir': _CARD,
    'cases.v0_3_signing.the_sdk_refuses_a_card_that_was_changed': _CARD,
    'cases.v0_3_signing.sabir_verifies_cards_of_the_sdk': _CARD,
    'cases.v1_signing.the_sdk_verifies_the_card_of_sabir': _CARD,
    'cases.v1_signing.the_sdk_refuses_a_card_that_was_changed': _CARD,
    'cases.v1_signing.sabir_verifies_cards_of_the_sdk': _CARD,
}
