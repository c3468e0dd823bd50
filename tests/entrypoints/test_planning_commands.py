"""The questions of a capacity planner, each answered by one command: golden numbers."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fleetline.entrypoints.cli import build
from fleetline.errors import FleetlineError

LLAMA_8B = ("--model", "llama-3.1-8b", "--accelerator", "H100-SXM")
CHAT = ("--prompt-tokens", "1024", "--output-tokens", "256")
FIRST_TOKEN = ("--objective", "TimeToFirstToken:p95:500ms")
CONTRACT = {
    *("replicas", "accelerators", "concurrency", "residence_seconds", "ceiling_rps", "limit"),
    *("utilization", "loop_gain", "drain_seconds", "cost_per_hour"),
    *("cost_per_million_output_tokens", "steps"),
}


def fleetline(*arguments: str) -> Result:
    return CliRunner().invoke(build(), list(arguments))


def answer(*arguments: str) -> Any:
    result = fleetline(*arguments, "--output", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_plan_has_every_key_that_scripts_rely_on() -> None:
    found = answer("plan", *LLAMA_8B, *CHAT, *FIRST_TOKEN, "--rate", "50")

    assert set(found) >= CONTRACT
    assert all(set(step) == {"name", "formula", "value", "unit"} for step in found["steps"])


def test_plan_obeys_littles_law_and_the_ceiling() -> None:
    found = answer("plan", *LLAMA_8B, *CHAT, *FIRST_TOKEN, "--rate", "50")

    assert found["concurrency"] == pytest.approx(50 * found["residence_seconds"])
    assert found["utilization"] == pytest.approx(50 / found["replicas"] / found["ceiling_rps"])
    assert found["replicas"] == math.ceil(50 / found["ceiling_rps"])
    assert 0 < found["loop_gain"] < 1


def test_a_stated_utilization_leaves_headroom() -> None:
    full = answer("plan", *LLAMA_8B, *CHAT, *FIRST_TOKEN, "--rate", "200")
    half = answer(
        "plan", *LLAMA_8B, *CHAT, *FIRST_TOKEN, "--rate", "200", "--target-utilization", "0.5"
    )

    assert half["utilization"] <= 0.5
    assert half["replicas"] >= 2 * full["replicas"] - 1


def test_cost_is_the_price_of_the_accelerators_over_the_tokens() -> None:
    found = answer("plan", *LLAMA_8B, *CHAT, *FIRST_TOKEN, "--rate", "50", "--price", "3.6")

    assert found["cost_per_hour"] == pytest.approx(3.6 * found["accelerators"])
    assert found["cost_per_million_output_tokens"] == pytest.approx(
        found["cost_per_hour"] / 3600 / (50 * 256) * 1e6
    )


def test_images_count_as_prompt_tokens() -> None:
    text = answer("plan", *LLAMA_8B, *CHAT, *FIRST_TOKEN, "--rate", "50")
    images = answer(
        "plan", *LLAMA_8B, *CHAT, *FIRST_TOKEN, "--rate", "50", "--image-tokens", "1500"
    )

    assert images["ceiling_rps"] < text["ceiling_rps"]


def test_the_chain_names_the_link_that_dominates_the_first_token() -> None:
    chain = answer("plan", *LLAMA_8B, *CHAT, *FIRST_TOKEN, "--rate", "50", "--allowance", "30ms")[
        "chain"
    ]

    assert chain[0] == {
        "link": "network and gateway",
        "mean_s": 0.03,
        "p95_s": 0.03,
        "dominates_first_token": False,
    }
    assert sum(link["dominates_first_token"] for link in chain) >= 1
    assert [link["link"] for link in chain] == [
        "network and gateway",
        "router",
        "request",
        "slot wait",
        "prefill wait",
        "own prefill",
        "first step",
        "decode",
    ]


def test_the_plan_says_which_knob_moves_the_ceiling() -> None:
    found = answer("plan", *LLAMA_8B, *CHAT, *FIRST_TOKEN, "--rate", "50")["sensitivity"]

    moves = {row["knob"]: row["ceiling_per_knob"] for row in found}
    assert moves["compute"] > 0
    assert moves["prompt tokens"] < 0
    assert [abs(row["ceiling_per_knob"]) for row in found] == sorted(
        (abs(change) for change in moves.values()), reverse=True
    )


def test_the_curve_shows_the_chain_and_where_the_branches_meet() -> None:
    found = answer("curve", *LLAMA_8B, *CHAT, *FIRST_TOKEN, "--rate", "8")

    places = {mark["place"]: mark["value"] for mark in found["marks"]}
    assert places["stable and unstable branch meet"] == pytest.approx(places["saturation"])
    assert places["a congested replica serves"] <= places["saturation"]
    assert places["stable branch at 8 requests/s"] < 256
    links = {link["link"]: link["mean_s"] for link in found["chain"]}
    assert links["decode"] > links["own prefill"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--objective", "TTFT:p95:1s"), "metric of --objective must be one of TimeToFirstToken"),
        (("--objective", "TimeToFirstToken:p100:1s"), "integer from p50 to p99, got 'p100'"),
        (("--objective", "TimeToFirstToken:p95:5"), "must be a duration such as 500ms"),
        (("--objective", "TimeToFirstToken"), "METRIC:PERCENTILE:TARGET"),
        ((*FIRST_TOKEN, "--allowance", "500ms"), "must be > the allowance of 0.5 s"),
        (("--objective", "TimePerOutputToken:p95:1ms"), "cannot be met"),
    ],
)
def test_a_wrong_question_is_refused_with_the_value(
    arguments: tuple[str, ...], message: str
) -> None:
    result = fleetline("plan", *LLAMA_8B, *CHAT, "--rate", "50", *arguments)

    assert isinstance(result.exception, FleetlineError)
    assert message in str(result.exception)


def test_a_model_that_does_not_fit_is_said_so() -> None:
    result = fleetline(
        *("plan", "--model", "llama-3.1-70b", "--accelerator", "H100-SXM"),
        *(*CHAT, *FIRST_TOKEN, "--rate", "1"),
    )

    assert "llama-3.1-70b in bf16 does not fit on 1 x H100-SXM" in str(result.exception)


@pytest.mark.parametrize(
    ("model", "kibibytes"), [("llama-3.1-8b", 128), ("llama-3.1-70b", 320), ("deepseek-r1", 68.6)]
)
def test_kv_cache_of_one_token(model: str, kibibytes: float) -> None:
    (row,) = answer("describe", "--model", model)["models"]

    assert row["KV KiB/token"] == pytest.approx(kibibytes, abs=0.05)


def test_one_stream_of_a_70b_is_bound_by_bandwidth() -> None:
    found = answer(
        *("describe", "--model", "llama-3.1-70b", "--weight-precision", "bf16"),
        *("--weight-precision", "fp8", "--accelerator", "H100-SXM", "--accelerator", "MI300X"),
    )
    rate = {
        (row["accelerator"], row["weights"]): row["bandwidth bound tok/s"]
        for row in found["single_stream"]
    }

    assert rate["1 x H100-SXM", "bf16"] == pytest.approx(23.7, abs=0.3)
    assert rate["1 x H100-SXM", "fp8"] == pytest.approx(2 * rate["1 x H100-SXM", "bf16"])
    assert rate["1 x MI300X", "bf16"] / rate["1 x H100-SXM", "bf16"] == pytest.approx(5.3 / 3.35)


def test_a_claim_beyond_saturation_is_refused() -> None:
    # More than an H100 can do even if it only multiplied: 989e12 / (2 x 8.03e9) = 61,600 token/s.
    possible = fleetline("curve", *LLAMA_8B, *CHAT, "--claim", "1000")
    impossible = fleetline("curve", *LLAMA_8B, *CHAT, "--claim", "61600")

    assert (possible.exit_code, impossible.exit_code) == (0, 1)
    assert "61600 token/s per accelerator is not possible" in impossible.stderr


def test_low_gpu_utilization_is_seen_beside_the_ceiling() -> None:
    marks = answer("curve", *LLAMA_8B, *CHAT, *FIRST_TOKEN, "--rate", "10")["marks"]
    value = {mark["place"]: mark["value"] for mark in marks}

    assert value["arithmetic in use"] < 0.3
    assert value["share of the ceiling in use"] > value["arithmetic in use"]


@pytest.mark.parametrize("ending", [".svg", ".png", ".html"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_curve_is_drawn(tmp_path: Path, ending: str) -> None:
    picture = tmp_path / f"curve{ending}"

    result = fleetline("curve", *LLAMA_8B, *CHAT, *FIRST_TOKEN, "--plot", str(picture))

    assert result.exit_code == 0, result.output
    assert picture.stat().st_size > 10_000


def test_ranking_is_by_cost_and_says_what_cannot_be() -> None:
    rows = answer(
        *("rank", "--model", "llama-3.1-70b", "--rate", "5", *CHAT),
        *("--objective", "TimePerOutputToken:p95:60ms", "--weight-precision", "fp8"),
        *("--accelerator", "H100-SXM", "--accelerator", "MI300X"),
        *("--accelerator", "Trainium2", "--accelerator", "T4"),
        *("--tensor-parallel", "2", "--tensor-parallel", "4"),
    )
    cost = [row["USD/10^6 output tokens"] for row in rows]

    assert {row["accelerator"] for row in rows} == {"H100-SXM", "MI300X", "Trainium2", "T4"}
    assert cost[:3] == sorted(cost[:3])
    assert rows[-1]["accelerator"] == "T4"
    assert "does not fit" in rows[-1]["limit"] or "cannot be met" in rows[-1]["limit"]


def test_a_price_of_ones_own_changes_the_order() -> None:
    asked = (
        *("rank", "--model", "llama-3.1-8b", "--rate", "5", *CHAT, *FIRST_TOKEN),
        *("--accelerator", "H100-SXM", "--accelerator", "L40S"),
    )

    cheap_h100 = answer(*asked, "--price", "H100-SXM=0.01")
    dear_h100 = answer(*asked, "--price", "H100-SXM=1000")

    assert cheap_h100[0]["accelerator"] == "H100-SXM"
    assert dear_h100[0]["accelerator"] == "L40S"


def test_help_shows_units_in_brackets() -> None:
    told = fleetline("plan", "--help").stdout

    assert "[tokens]" in told
    assert "[1/s]" in told
