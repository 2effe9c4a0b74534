"""Every kept case, some new ones, and the fuzzers themselves."""

from __future__ import annotations

import pytest

pytest.importorskip("resource", reason="memory is bounded by resource.setrlimit")

import fuzz
from fuzzers.cases import ACCEPTED, CORPUS, REFUSED, stored
from fuzzers.child import FOUND, Child, Job, corpus_jobs
from fuzzers.session import Session
from fuzzers.table import TARGETS

SEED = 0
MAX_CORPUS_BYTES = 200_000


@pytest.fixture(scope="module")
def child():
    with Child() as started:
        yield started


def target_params():
    return [
        pytest.param(name, marks=pytest.mark.needs(*target.needs) if target.needs else ())
        for name, target in TARGETS.items()
    ]


def corpus_params():
    return [
        pytest.param(job, id=f"{job.target}: {job.kept} {job.number}", marks=mark.marks)
        for mark in target_params()
        for job in corpus_jobs(mark.values)
    ]


def check(job, outcome):
    """Fail with how to repeat a finding."""
    if outcome.result == FOUND:
        pytest.fail(f"python tests/fuzz/fuzz.py {job}\n{outcome.text}")


@pytest.mark.parametrize("job", corpus_params())
def test_kept_cases(child, job):
    outcome = child.run(job)
    check(job, outcome)
    assert outcome.result in (ACCEPTED, REFUSED)
    if job.kept.startswith("plain") and job.number == 0:
        assert outcome.result == ACCEPTED, "a seed from which damage begins"


@pytest.mark.parametrize("name", target_params())
def test_new_cases(child, name):
    for number in range(TARGETS[name].quick):
        job = Job(name, SEED, number)
        check(job, child.run(job))


# The fuzzers themselves


@pytest.mark.parametrize("name", target_params())
def test_a_case_is_always_the_same(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target = TARGETS[name]
    cases = [target.case(3, number) for number in range(10)]
    assert [target.case(3, number) for number in range(10)] == cases
    assert len({repr(case) for case in cases}) > 5, "and others are other cases"


@pytest.fixture(scope="module")
def trapped():
    with Child() as started:
        assert started.run(Job("trap", kept="nothing")).result == ACCEPTED
        yield started


@pytest.mark.parametrize(
    ("trap", "text"),
    [
        ("bug", "KeyError: 'key'"),
        ("warning", "RuntimeWarning: overflow"),
        ("finding", "Finding: as asked for"),
        ("escape", "control characters"),
        ("exit", "SystemExit: 3"),
        ("litter", "left temporary files behind"),
        ("allocation", "MemoryError: more than"),
        ("growth", "MemoryError: it took"),
        ("crash", "Crash: the child ended with status -11"),
        ("hang", "Hang: no answer"),
    ],
)
def test_what_must_be_found_is_found(trapped, monkeypatch, trap, text):
    if trap == "hang":
        monkeypatch.setattr(trapped, "seconds", 0.2)
    outcome = trapped.run(Job("trap", kept=trap))
    assert outcome.result == FOUND
    assert text in outcome.text
    monkeypatch.undo()
    assert trapped.run(Job("trap", kept="nothing")).result == ACCEPTED, "the next case is tried"


def test_a_session_keeps_what_it_finds(tmp_path, capsys):
    jobs = [Job("trap", 5, 0), Job("trap", kept="bug"), Job("trap", kept="bug"), Job("trap", 5, 1)]
    session = Session(iter(jobs), 60.0, tmp_path)
    session.run(1)
    assert session.tried == {("trap", ACCEPTED): 2, ("trap", FOUND): 2}
    (kept,) = tmp_path.iterdir()
    assert stored(kept) == jobs[1].case()
    told = (kept / "finding.txt").read_text()
    assert "fuzz.py trap bug --case 0\n" in told and "KeyError: 'key'" in told
    assert "fuzz.py trap bug --case 0\n" in capsys.readouterr().out


def test_the_program(tmp_path, capsys):
    assert fuzz.main(["npy", "--seed", "0", "--case", "3"]) in (0, 1)
    assert capsys.readouterr().out.startswith("npy --seed 0 --case 3: ")
    file = tmp_path / "some.svm"
    file.write_text("1 1:2\n0 2:1\n")
    assert fuzz.main(["libsvm", str(file)]) == 0
    assert capsys.readouterr().out == f"libsvm {file} --case 0: accepted\n"
    with pytest.raises(SystemExit, match="no target 'x'"):
        fuzz.main(["x"])


def test_the_corpus_is_small():
    sizes = [path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()]
    assert sum(sizes) < MAX_CORPUS_BYTES
    assert {path.name for path in CORPUS.iterdir()} <= set(TARGETS)
