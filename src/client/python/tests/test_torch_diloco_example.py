"""The example of Decoupled DiLoCo, small: it ends in each of its ways, learns, goes on through a storm, and what it has noted
can be drawn."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Callable, List

import pytest

pytest.importorskip("torch")

from programs import StartPython, output_of  # noqa: E402
from serving import HANG, ROOT, Broker, command  # noqa: E402

#: The loss of a model that takes every character to be as likely as the others is 4.6.
LEARNED = 4.4

Run = Callable[..., str]


@pytest.fixture
def run(start_python: StartPython, broker: Broker) -> Run:
    """Runs a program of the example with arguments to its end; returns what it has printed."""

    def start(program: str, *arguments: str) -> str:
        script = str(ROOT / "examples" / "diloco" / program)
        return output_of(start_python(script, *arguments, PSERVER_URL=broker.url))

    return start


def plot(broker: Broker, out: Path, *arguments: str) -> str:
    """Draws the losses of jobs; returns the picture."""
    told = [*command(), "plot", "--by", "elapsed", "--url", broker.url, "--out", str(out)]
    subprocess.run([*told, *arguments], check=True, timeout=HANG)
    return out.read_text()


def losses(output: str) -> List[float]:
    return [float(loss) for loss in re.findall(r" s {2}loss (\S+)$", output, re.MULTILINE)]


def test_each_way_learns_and_is_drawn(run: Run, broker: Broker, tmp_path: Path) -> None:
    for way in "alone", "barrier", "decoupled":
        output = run("run.py", way, "--learners", "2", "--steps", "36", "--step-ms", "0")
        assert losses(output)[-1] < LEARNED
        assert output.splitlines()[-1].startswith(f"{way}: loss ")
    picture = plot(
        broker, tmp_path / "loss.svg", "--job", "alone", "--against", "barrier,decoupled"
    )
    assert picture.count("<polyline") == 3
    for way in "alone", "barrier", "decoupled":
        assert f">{way}</text>" in picture
    # What is in a job is not trained on by mistake.
    with pytest.raises(AssertionError):
        run("run.py", "alone")


def test_a_storm_is_survived(run: Run, broker: Broker, tmp_path: Path) -> None:
    size = ("--learners", "2", "--steps", "40", "--step-ms", "100")
    storm = ("--storm", "--kills", "4", "--kill-every", "0.5")
    output = run("run.py", "decoupled", "--job", "storm", *size, *storm)
    assert "the host gets SIGKILL" in output and re.search(r"learner \d gets SIGKILL", output)
    assert losses(output)[-1] < LEARNED
    assert "storm: host killed" in plot(
        broker, tmp_path / "loss.svg", "--job", "storm", "--against", "storm"
    )


def test_ways_are_compared_by_their_losses(run: Run) -> None:
    way = "alone"
    output = run("quality.py", "--steps", "36", "--step-ms", "0", "--seeds", "2", "--ways", way)
    found = re.search(rf"^\| {way} \| (\S+) ± \S+ \|$", output, re.MULTILINE)
    assert found is not None and float(found[1]) < LEARNED
