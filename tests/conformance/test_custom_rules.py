"""Rules of custom resources in CEL: across fields, with messages of their own, on transitions."""

from tests.conformance.client import Client
from tests.conformance.manifests import widget


def test_rules_wait_for_a_valid_object(api: Client, widgets: str) -> None:
    reply = api.post(widgets, widget(color="green", replicas=5, max=2))

    assert "some validation rules were not checked because the object was invalid" in reply.message
    assert "replicas must be <= max" not in reply.message


def test_a_rule_across_fields_is_checked(api: Client, widgets: str) -> None:
    reply = api.post(widgets, widget(replicas=5, max=2))

    assert reply.code == 422
    assert reply.message == (
        'Widget.conformance.fleetline.dev "w" is invalid:'
        " spec: Invalid value: replicas must be <= max"
    )
    assert reply.causes == [
        {
            "reason": "FieldValueInvalid",
            "message": "Invalid value: replicas must be <= max",
            "field": "spec",
        }
    ]


def test_a_rule_can_make_its_own_message(api: Client, widgets: str) -> None:
    reply = api.post(widgets, widget(timeout="0s"))

    assert reply.message.endswith('spec.timeout: Invalid value: "0s": timeout must be > 0s, got 0s')


def test_a_rule_that_cannot_be_evaluated_refuses(api: Client, widgets: str) -> None:
    reply = api.post(widgets, widget(timeout="soon"))

    assert reply.code == 422
    assert reply.causes[0]["field"] == "spec.timeout"
    assert "evaluating rule" in reply.message


def test_a_transition_rule_compares_with_the_old(api: Client, widgets: str) -> None:
    assert api.post(widgets, widget(color="fixed")).code == 201

    reply = api.patch(f"{widgets}/w", {"spec": {"color": "red"}})

    assert reply.code == 422
    assert reply.causes[0] == {
        "reason": "FieldValueForbidden",
        "message": "Forbidden: color is fixed",
        "field": "spec.color",
    }


def test_a_transition_rule_follows_keyed_items(api: Client, widgets: str) -> None:
    api.post(widgets, widget(parts=[{"name": "a", "size": 3}, {"name": "b", "size": 5}]))

    grown = api.patch(
        f"{widgets}/w", {"spec": {"parts": [{"name": "b", "size": 6}, {"name": "a", "size": 3}]}}
    )
    shrunk = api.patch(f"{widgets}/w", {"spec": {"parts": [{"name": "b", "size": 1}]}})

    assert grown.code == 200
    assert shrunk.code == 422
    assert "spec.parts[0]: Invalid value: a part never shrinks" in shrunk.message
