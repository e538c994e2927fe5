"""Tries to get in: without a token, with a wrong one, by another method, by another path."""

import base64
from typing import Any

import pytest

from evalfarm.contracts.bundle import Bundle
from evalfarm.web.access import MOST_FAILURES, WINDOW_S, Failures, credential, is_own_name, place_of

PATHS = (
    "/api/v1/openapi.json",
    "/api/v1/datasets",
    "/api/v1/datasets/conversations",
    "/api/v1/datasets/conversations/preview",
    "/api/v1/bundles",
    "/api/v1/bundles/preview",
    "/api/v1/bundles/shop-1/0/1",
    "/api/v1/nothing",
    "/api/v1/",
    "/api/v1",
    "/api/v2/datasets",
)
PAGES = ("/", "/style.css", "/runs/shop-1", "/versions", "/versions/Shop", "/conversations/shop-1/0/1")
PAGES += ("/datasets/conversations.csv", "/conversations/shop-1/0/1/bundle.json", "/nothing")


@pytest.mark.parametrize("path", PATHS)
def test_the_api_needs_a_token_on_this_machine_too(shop: Any, path: str) -> None:
    answer = shop.serve(open_here=True).get(path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer realm=")
    assert answer.json()["error"]["code"] == "no_token"


@pytest.mark.parametrize("path", [*PATHS, *PAGES])
def test_elsewhere_everything_needs_a_token(shop: Any, path: str) -> None:
    answer = shop.serve().get(path)
    assert (answer.status_code, "WWW-Authenticate" in answer.headers) == (401, True)


@pytest.mark.parametrize("path", PAGES[:-1])
def test_on_this_machine_the_console_needs_none(shop: Any, path: str) -> None:
    assert shop.serve(open_here=True).get(path).status_code == 200


def test_a_token_opens_the_api_and_the_console(shop: Any) -> None:
    client = shop.serve(shop.token())
    assert {path: client.get(path).status_code for path in (*PATHS[:7], *PAGES[:-1])} == dict.fromkeys(
        (*PATHS[:7], *PAGES[:-1]), 200
    )
    assert {path: client.get(path).status_code for path in (*PATHS[7:], PAGES[-1])} == dict.fromkeys(
        (*PATHS[7:], PAGES[-1]), 404
    )


def test_a_browser_gives_the_token_as_its_password(shop: Any) -> None:
    client, text = shop.serve(), shop.token()
    for name in ("", "anybody"):
        given = base64.b64encode(f"{name}:{text}".encode()).decode()
        assert client.get("/", headers={"Authorization": f"Basic {given}"}).status_code == 200


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Basic",
        "Basic !!!",
        "Basic eA==",
        "Basic //////8=",
        "Token {token}",
        "{token}",
        "Bearer {token}x",
        "Bearer x{token}",
        "Bearer {token} {token}",
        "Bearer {token},Bearer {token}",
        'Bearer "{token}"',
        "Bearer {digest}",
        "Bearer {id}",
        "Bearer efp_../../runs_{secret}",
    ],
)
def test_what_is_no_token_opens_nothing(shop: Any, given: str) -> None:
    text, kept = shop.token_and_record()
    header = given.format(token=text, digest=kept.digest, id=kept.id, secret=text[-43:])
    answer = shop.serve().get("/api/v1/datasets", headers={"Authorization": header})
    assert answer.status_code == 401
    assert text not in answer.text


def test_a_token_in_the_address_opens_nothing_and_is_not_repeated(shop: Any) -> None:
    text = shop.token()
    client = shop.serve()
    for query in (f"token={text}", f"access_token={text}", f"authorization=Bearer%20{text}"):
        answer = client.get(f"/api/v1/datasets?{query}")
        assert (answer.status_code, text in answer.text) == (401, False)
    assert client.get(f"/api/v1/datasets?x={text}", headers={"Authorization": f"Bearer {text}"}).status_code == 400


def test_an_expired_and_a_revoked_token_are_said_to_be_so_and_open_nothing(farm: Any) -> None:
    text, kept = farm.token_and_record(days=1)
    client = farm.serve(text)
    assert client.get("/api/v1/datasets").status_code == 200
    farm.clock.now_s = kept.expires_at
    expired = client.get("/api/v1/datasets")
    farm.tokens.revoke(kept.id, farm.clock())
    revoked = client.get("/api/v1/datasets")
    told = [(answer.status_code, answer.json()["error"]["message"]) for answer in (expired, revoked)]
    assert told == [(401, "this token is expired"), (401, "this token is revoked")]


def test_a_revoked_token_opens_nothing_from_the_next_request_on(farm: Any) -> None:
    text, kept = farm.token_and_record()
    client = farm.serve(text)
    assert client.get("/api/v1/datasets").status_code == 200
    farm.tokens.revoke(kept.id, farm.clock())
    assert client.get("/api/v1/datasets").status_code == 401


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])
@pytest.mark.parametrize("path", ["/api/v1/datasets", "/", "/nothing"])
def test_any_other_method_is_turned_away_with_or_without_a_token(shop: Any, method: str, path: str) -> None:
    for client in (shop.serve(shop.token()), shop.serve(), shop.serve(open_here=True)):
        answer = client.request(method, path)
        assert answer.status_code == 401


def test_a_method_cannot_be_named_beside_the_method(shop: Any) -> None:
    client = shop.serve(shop.token())
    for header in ("X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method"):
        assert client.post("/api/v1/datasets", headers={header: "GET"}).status_code == 401
        assert (
            client.get("/api/v1/datasets", headers={header: "DELETE"}).json() == client.get("/api/v1/datasets").json()
        )
    assert client.get("/api/v1/datasets?_method=DELETE").status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/datasets/",
        "/api/v1//datasets",
        "//api/v1/datasets",
        "/API/v1/datasets",
        "/api/v1/datasets/../../../etc/passwd",
        "/api/v1/datasets/..%2f..%2fetc",
        "/api/v1/datasets/%2e%2e/%2e%2e",
        "/api/v1/datasets/conversations%00",
        "/api/v1/datasets/conversations;x",
        "/api/v1/datasets/conversations.csv",
        "/api/v1/bundles/..%2f..%2ftokens/0/1",
        "/api/v1/bundles/shop-1/-1/1",
        "/api/v1/bundles/shop-1/0/01",
        "/api/v1/bundles/shop-1/%D9%A0/1",
        "/api/v1/bundles/shop-1/99999999999999999999/1",
        "/api/v1/bundles/shop-1/" + "9" * 5000 + "/1",
        "/api/v1/bundles/shop-1/0/2",
        "/api/v1/bundles/shop-1/99/1",
        "/api/v1/bundles/..%5c..%5c/0/1",
        "/conversations/shop-1/0/1/../../../../tokens",
        "/runs/%2e%2e",
        "/runs/..%2ftokens",
        "/runs/shop-1%00",
        "/datasets/..%2fconversations.csv",
        "/datasets/conversations.exe",
        "/versions/..%2f..",
        "/templates/base.html.j2",
        "/static/x",
        "/robots.txt",
    ],
)
def test_no_path_leads_to_what_has_none(shop: Any, path: str) -> None:
    assert shop.serve(shop.token()).get(path).status_code == 404
    assert shop.serve().get(path).status_code == 401


def test_too_many_wrong_tokens_from_one_place_make_it_wait(farm: Any) -> None:
    right = farm.token()
    client = farm.serve()
    wrong = {"Authorization": "Bearer x"}
    assert [client.get("/", headers=wrong).status_code for _ in range(MOST_FAILURES)] == [401] * MOST_FAILURES
    waits = client.get("/", headers={"Authorization": f"Bearer {right}"})
    assert (waits.status_code, waits.headers["retry-after"]) == (429, f"{WINDOW_S + 1:.0f}")
    farm.clock.now_s += WINDOW_S
    assert client.get("/", headers={"Authorization": f"Bearer {right}"}).status_code == 200


def test_who_sends_no_token_at_all_has_guessed_nothing(shop: Any) -> None:
    client = shop.serve()
    assert {client.get("/").status_code for _ in range(3 * MOST_FAILURES)} == {401}


def test_failures_are_counted_by_place_and_of_so_many_places_at_most() -> None:
    failures = Failures(lambda: 0.0)
    for number in range(20_000):
        failures.add(f"place {number}")
    for _ in range(MOST_FAILURES):
        failures.add("one")
    assert (failures.wait_s("one") > 0, failures.wait_s("place 19999")) == (True, 0.0)
    assert len(failures._by_place) == 10_000


@pytest.mark.parametrize("name", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "", "[::2]:8080"])
def test_a_name_that_leads_here_from_elsewhere_is_not_answered(shop: Any, name: str) -> None:
    answer = shop.serve(open_here=True).get("/runs/shop-1", headers={"Host": name})
    assert (answer.status_code, "shop-1" in answer.text) == (403, False)


def test_this_machine_s_own_names_are() -> None:
    names = ("localhost", "LOCALHOST:1", "127.0.0.1:8080", "[::1]", "[::1]:8080")
    assert [name for name in names if not is_own_name(name)] == []


def test_a_subscriber_s_network_is_one_place() -> None:
    assert place_of("2001:db8::1") == place_of("2001:db8::ffff") == "2001:db8::/64"
    assert (place_of("192.0.2.1"), place_of("somewhere")) == ("192.0.2.1", "somewhere")


def test_a_token_is_read_from_the_header_in_two_ways() -> None:
    basic = base64.b64encode(b"me:efp_x").decode()
    given = ("Bearer efp_x", "bearer   efp_x ", f"Basic {basic}", "Basic " + base64.b64encode(b"efp_x").decode(), "x y")
    assert [credential(one) for one in given] == ["efp_x", "efp_x", "efp_x", "", None]


def test_a_foreign_scope_sees_nothing_and_is_told_nothing(shop: Any) -> None:
    client = shop.serve(shop.token("shop"))
    for dataset in ("conversations", "versions", "skills", "tools", "runs", "cells", "cases"):
        for query in ("", "&run=bank-1", "&suite=bank", "&label=secret", "&plugin=Bank", "&source=all"):
            answer = client.get(f"/api/v1/datasets/{dataset}?format=jsonl{query}")
            assert (answer.status_code, "bank" in answer.text.lower()) == (200, False)
    for path in ("/api/v1/bundles/bank-1/0/1", "/runs/bank-1", "/runs/bank-1/report", "/versions/Bank"):
        assert client.get(path).status_code == 404
    for path in ("/conversations/bank-1/0/1", "/conversations/bank-1/0", "/conversations/bank-1/0/1/bundle.json"):
        assert client.get(path).status_code == 404
    for path in ("/", "/versions", "/api/v1/bundles", "/api/v1/bundles?run=bank-1", "/datasets/conversations.csv"):
        answer = client.get(path)
        assert (answer.status_code, "bank" in answer.text.lower()) == (200, False)


def test_a_scope_is_kept_within_an_import_of_many_suites(farm: Any) -> None:
    farm.add_run("shop-1")
    farm.add_run("bank-1", suite="bank")
    client = farm.serve(farm.token())
    names = [client.get(f"/api/v1/bundles/{run}/0/1").text for run in ("shop-1", "bank-1")]
    bundles = [
        name.replace('"run":"', '"run":"old-').replace('"conversation":"', '"conversation":"old-') for name in names
    ]
    farm.add_import("mixed", [Bundle.model_validate_json(text) for text in bundles])
    scoped, whole = farm.serve(farm.token("shop")), farm.serve(farm.token())
    assert [c.get("/api/v1/bundles/old-bank-1/0/1").status_code for c in (scoped, whole)] == [404, 200]
    assert [c.get("/api/v1/bundles/old-shop-1/0/1").status_code for c in (scoped, whole)] == [200, 200]
    rows = [c.get("/api/v1/datasets/conversations/preview?run=mixed").json()["rows"] for c in (scoped, whole)]
    assert rows == [1, 2]


def test_the_page_of_conversations_offers_a_scope_no_import_by_name(farm: Any) -> None:
    farm.add_run("shop-1")
    farm.add_import("bank-merger", [])
    pages = [farm.serve(token).get("/conversations").text for token in (farm.token("shop"), farm.token())]
    assert ["bank-merger" in page for page in pages] == [False, True]
    assert ["shop-1" in page for page in pages] == [True, True]


@pytest.mark.parametrize("path", ["/runs/shop-1", "/conversations/shop-1/0", "/api/v1/bundles/shop-1/0/1"])
def test_of_a_run_that_was_just_deleted_no_other_scope_s_runs_are_offered(farm: Any, path: str) -> None:
    farm.add_run("shop-1")
    farm.add_run("bank-1", suite="bank")
    client = farm.serve(farm.token("shop"))
    farm.store.delete_run("shop-1")
    answer = client.get(path)
    assert (answer.status_code, "shop-1" in answer.text, "bank-1" in answer.text) == (404, True, False)


def test_the_use_of_a_token_is_noted_and_a_refused_one_s_is_not(farm: Any) -> None:
    text, _ = farm.token_and_record()
    farm.serve(text).get("/api/v1/datasets")
    assert [use and use.used_at for _, use in farm.tokens.all()] == [farm.clock()]
