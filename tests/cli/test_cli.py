"""The command line: what it prints, writes and returns; the obvious mistakes."""

from __future__ import annotations

import inspect
import json
import os
import re
import signal
import subprocess
import sys
import warnings
from dataclasses import fields
from pathlib import Path
from shlex import split

import numpy as np
import pytest

pytest.importorskip("pandas")
import pandas as pd

typer = pytest.importorskip("typer", reason="the command line needs polysift[cli]")
from typer.testing import CliRunner  # noqa: E402

import polysift  # noqa: E402
from clocks import GUARD  # noqa: E402
from every_kind import every_kind  # noqa: E402
from mixed_tables import mixed_table  # noqa: E402
from polysift import FPCClassifier, FPCClassifierCV  # noqa: E402
from polysift.cli.app import app  # noqa: E402
from polysift.cli.console import state  # noqa: E402
from polysift.cli.options import (  # noqa: E402
    EngineOptions,
    ModelOptions,
    SearchOptions,
    SolverOptions,
)
from polysift.solvers.names import SOLVERS  # noqa: E402
from problems import load_real, noisy_problem  # noqa: E402

PAPERS = "--kernel polynomial --degree 3 --scaler minmax --solver paper"
"""A feature map that is not chosen."""

PROGRAM = Path(sys.executable).with_name("polysift")


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """Return an empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(state, "debug", False)
    return tmp_path


@pytest.fixture
def problem(here, rng) -> pd.DataFrame:
    """Write train.csv and train.parquet, test.csv and test.parquet; return the test rows."""
    X, y = noisy_problem(rng, 1200, 3, noise=0.05)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["label"] = np.where(y > 0, "yes", "no")
    for name, rows in (("train", frame[:800]), ("test", frame[800:])):
        rows.to_csv(f"{name}.csv", index=False)
        rows.to_parquet(f"{name}.parquet", index=False)
    return frame[800:].reset_index(drop=True)


def run(command: str, code: int = 0):
    """Run a command in this process, and check its exit code."""
    outcome = CliRunner().invoke(app, split(command))
    if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    assert outcome.exit_code == code, (outcome.stdout, outcome.stderr)
    return outcome


def call(command: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the installed command in a process of its own, and check its exit code."""
    words = [str(PROGRAM), *split(command)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=GUARD)
    assert done.returncode == code, done.stderr
    return done


class TestWhole:
    """From data to predictions, in this process and through the installed command."""

    @pytest.mark.parametrize(("ending", "call"), [("csv", run), ("parquet", call)])
    def test_real_data(self, here, ending, call):
        ort = pytest.importorskip("onnxruntime", reason="the export needs polysift[onnx]")
        X, y = load_real("htru2")
        order = np.random.default_rng(0).permutation(len(y))[:6000]
        frame = pd.DataFrame(X[order], columns=[f"x{j}" for j in range(X.shape[1])])
        frame["kind"] = np.where(y[order] > 0, "pulsar", "noise")
        for name, rows in (("train", frame[:4000]), ("test", frame[4000:])):
            path = here / f"{name}.{ending}"
            rows.to_csv(path, index=False) if ending == "csv" else rows.to_parquet(path)
        data, test = f"train.{ending}", f"test.{ending}"

        made = call(
            f"fit {data} --target kind --degree 2 --seed 0 --json --validation {test} "
            "--calibration sigmoid --report report.html"
        )
        fitted = json.loads(made.stdout)
        assert fitted["rows"] == 4000
        assert fitted["validation"]["accuracy"] > 0.96
        assert fitted["training"]["roc_auc"] > 0.95
        assert "Convergence" in (here / "report.html").read_text()

        tuned = call(
            f"tune {data} -t kind --degrees 1,2 --solvers paper --seed 0 -o "
            "tuned.polysift --calibration isotonic --top 3"
        )
        assert "the best of" in tuned.stdout
        assert "degree" in tuned.stdout

        judged = json.loads(call(f"evaluate tuned.polysift {test} -t kind --json").stdout)
        for name in ("accuracy", "balanced_accuracy", "roc_auc", "log_loss", "confusion_matrix"):
            assert judged[name] is not None
        assert judged["accuracy"] > 0.96
        assert np.sum(judged["confusion_matrix"]) == 2000

        call(f"predict tuned.polysift {test} -o out.parquet --scores --proba")
        out = pd.read_parquet("out.parquet")
        assert list(out) == ["prediction", "score", "probability_noise", "probability_pulsar"]
        truth = frame["kind"][4000:].to_numpy()
        assert np.mean(out["prediction"] == truth) == judged["accuracy"]

        seen = call("inspect tuned.polysift").stdout
        assert "4,000 rows x 8 features" in seen
        assert "noise" in seen

        call("export tuned.polysift tuned.onnx")
        session = ort.InferenceSession("tuned.onnx")
        rows = frame.drop(columns="kind")[4000:].to_numpy()
        label, score, *_ = session.run(None, {"X": rows})
        np.testing.assert_allclose(score, out["score"], atol=1e-10)
        assert (label == out["prediction"]).all()

    def test_a_table(self, here):
        pytest.importorskip("onnx", reason="the export needs polysift[onnx]")
        frame, y = mixed_table(200)
        frame.assign(target=y).to_parquet("table.parquet")
        run("fit table.parquet -t target --degree 2 --n-centers 10 --seed 0")
        seen = run("inspect model.polysift").stdout
        assert "category" in seen and "identifier" in seen and "date" in seen
        kinds = json.loads(run("inspect model.polysift --json").stdout)["column_kinds"]
        assert kinds == polysift.load("model.polysift").column_kinds_.tolist()
        told = run("export model.polysift model.onnx --input-type float32").stdout
        for text in ("age (float32)", "city (text)", "label_2 (text)", "seen (float64)"):
            assert text in " ".join(told.split())
        assert "row (" not in told and "unit (" not in told

    def test_csv_and_parquet_give_the_same_model(self, problem):
        for ending in ("csv", "parquet"):
            run(f"fit train.{ending} -t label --seed 0 -o {ending}.polysift")
        one, other = (polysift.load(f"{ending}.polysift") for ending in ("csv", "parquet"))
        np.testing.assert_array_equal(one.coef_, other.coef_)

    def test_the_model_is_that_of_the_library(self, problem):
        run(
            "fit train.parquet -t label --seed 5 --solver converged --tol 0.01 "
            "--degree 2 --scaler standard --n-centers 7 --jobs 1"
        )
        train = pd.read_parquet("train.parquet")
        own = FPCClassifier(
            degree=2, solver="converged", tol=0.01, scaler="standard", n_centers=7, random_state=5
        ).fit(train.drop(columns="label"), train["label"])
        loaded = polysift.load("model.polysift")
        np.testing.assert_array_equal(loaded.coef_, own.coef_)
        assert loaded.get_params() == own.get_params() | {"n_jobs": 1}


class TestStart:
    def test_help_and_version_are_light(self):
        heavy = "{'sklearn', 'scipy', 'numpy', 'pyarrow', 'matplotlib', 'onnx'}"
        code = (
            "import sys\nfrom polysift.__main__ import main\n"
            "try: main()\nexcept SystemExit: pass\n"
            f"print({heavy} & set(sys.modules), file=sys.stderr)"
        )
        for arguments in (["--version"], ["fit", "--help"]):
            done = subprocess.run(
                [sys.executable, "-c", code, *arguments], capture_output=True, text=True
            )
            assert done.stderr.strip() == "set()"

    def test_version(self):
        assert run("--version").stdout.strip() == f"polysift {polysift.__version__}"
        assert call("--version").stdout == run("--version").stdout

    def test_help_names_all_commands(self):
        text = run("--help").stdout
        names = ("fit", "tune", "predict", "evaluate", "inspect", "export", "demo", "reproduce")
        for name in names:
            assert name in text
        assert "completion" in text

    def test_module(self):
        done = subprocess.run(
            [sys.executable, "-m", "polysift", "--version"], capture_output=True, text=True
        )
        assert done.stdout.startswith("polysift ")

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_completion(self, shell):
        words = {"bash": {"COMP_WORDS": "polysift ev", "COMP_CWORD": "1"}}.get(
            shell,
            {"_TYPER_COMPLETE_ARGS": "polysift ev", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
        )
        asked = os.environ | words | {"_POLYSIFT_COMPLETE": f"complete_{shell}"}
        done = subprocess.run([str(PROGRAM)], env=asked, capture_output=True, text=True)
        assert "evaluate" in done.stdout

    def test_without_typer(self, here):
        code = "import sys\nsys.modules['typer'] = None\nfrom polysift.__main__ import main\nmain()"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 1
        assert "pip install 'polysift[cli]'" in done.stderr


class TestPlugins:
    """Commands of other distributions, in processes that see real ones, broken ones, or none."""

    @pytest.fixture
    def packages(self, tmp_path) -> Path:
        """Return a folder with all that is installed here, but for the paper's distribution."""
        folder = tmp_path / "packages"
        folder.mkdir()
        for site in {Path(entry) for entry in sys.path if entry.endswith("-packages")}:
            for path in site.iterdir():
                if not path.name.startswith("polysift_paper") and path.suffix != ".pth":
                    (folder / path.name).symlink_to(path)
        return folder

    @pytest.fixture
    def call(self, packages):
        """Run a command in a process that sees these packages and those of the given folders."""

        def call(command: str, *folders: Path) -> subprocess.CompletedProcess[str]:
            home = Path(polysift.__file__).parents[1]
            tree = [] if home.name.endswith("-packages") else [home]
            paths = os.pathsep.join(map(str, [*folders, *tree, packages]))
            return subprocess.run(
                [sys.executable, "-S", "-m", "polysift", *split(command)],  # -S: no site-packages
                env=os.environ | {"PYTHONPATH": paths},
                capture_output=True,
                text=True,
                timeout=GUARD,
            )

        return call

    @staticmethod
    def plugin(folder: Path, entry: str, source: str) -> Path:
        """Write a distribution that adds a command."""
        known = folder / "another-1.0.dist-info"
        known.mkdir(parents=True)
        (known / "METADATA").write_text("Metadata-Version: 2.1\nName: another\nVersion: 1.0\n")
        (known / "entry_points.txt").write_text(f"[polysift.commands]\n{entry}\n")
        (folder / "another.py").write_text(source)
        return folder

    @pytest.mark.parametrize("words", ["", "--help", "-h", "uci --runs 5", "simulations 1 -j 2"])
    def test_reproduce_says_how_to_get_it(self, call, words):
        done = call(f"reproduce {words}")
        assert done.returncode == 1, done.stderr
        assert "pip install polysift-paper" in done.stderr
        assert done.stdout == "" and "Traceback" not in done.stderr

    def test_help_without_plugins(self, call):
        done = call("--help")
        assert done.returncode == 0, done.stderr
        assert "reproduce" in done.stdout and "polysift-paper" in done.stdout
        assert call("nothing").returncode == 2

    def test_a_plugin_is_loaded_when_it_is_called(self, call, tmp_path):
        source = (
            "import sys\nimport typer\nprint('loaded', file=sys.stderr)\napp = typer.Typer()\n"
            "@app.callback()\ndef main(): 'More.'\n"
            "@app.command()\ndef hello(): print('hello')\n"
        )
        folder = self.plugin(tmp_path / "good", "more = another:app\nfit = another:app", source)
        done = call("more hello", folder)
        assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "loaded\n")
        assert "More." in call("--help", folder).stdout
        own = call("fit --help", folder)  # no plugin replaces a command
        assert own.returncode == 0 and own.stderr == "" and "--degree" in own.stdout

    @pytest.mark.parametrize(
        ("entry", "cause"),
        [
            ("reproduce = another:app", "ZeroDivisionError"),
            ("reproduce = nowhere:app", "ModuleNotFoundError"),
        ],
    )
    def test_a_broken_plugin_fails_alone(self, call, tmp_path, entry, cause):
        folder = self.plugin(tmp_path / "bad", entry, "1 / 0\n")
        for words in ("--version", "fit --help", "--help"):
            done = call(words, folder)
            assert done.returncode == 0 and done.stderr == "", done.stderr
        assert "Cannot be loaded (another)" in done.stdout
        done = call("reproduce uci --help", folder)
        assert done.returncode == 1
        assert "Error: polysift reproduce cannot be loaded" in done.stderr
        assert cause in done.stderr and "Install another again" in done.stderr


def test_every_parameter_has_an_option():
    def names(*groups):
        return {field.name for group in groups for field in fields(group)}

    model = set(inspect.signature(FPCClassifier).parameters)
    engine = {"engine", "verbose"}
    assert names(EngineOptions) == {"engine", "address", "workers", "cpus"}
    assert names(ModelOptions, SolverOptions) | engine | {"warm_start", "columns"} == model
    search = set(inspect.signature(FPCClassifierCV).parameters)
    assert names(SearchOptions, SolverOptions) | engine | {"refit", "columns"} == search
    options = run("fit --help").stdout
    for name in model - {"verbose", "random_state"}:
        assert f"--{name.replace('_', '-')}" in options


class TestFit:
    def test_options_reach_the_model(self, problem):
        run(
            "fit train.csv -t label --alpha 2 --beta 0.5 --max-iter 3 --class-weight "
            "balanced --memory-limit 1GB --time-limit 10m --centers random "
            "--n-centers auto --scaler none --checkpoint ck --calibration isotonic "
            "--seed 1 --rho 1e-3 --tol 0"
        )
        params = polysift.load("model.polysift").get_params()
        expected = {
            "alpha": 2.0,
            "beta": 0.5,
            "max_iter": 3,
            "class_weight": "balanced",
            "memory_limit": "1GB",
            "time_limit": 600.0,
            "centers": "random",
            "n_centers": "auto",
            "scaler": None,
            "calibration": "isotonic",
            "random_state": 1,
            "rho": 1e-3,
            "tol": 0.0,
            "verbose": 0,
        }
        assert {name: params[name] for name in expected} == expected
        assert Path("ck").is_dir()

    def test_given_centers_weights_and_columns(self, problem):
        np.save("points.npy", np.array([[0.1, 0.2], [0.5, 0.5], [0.9, 0.1]]))
        train = pd.read_csv("train.csv")
        train["w"] = np.arange(len(train)) % 3
        train.to_csv("weighted.csv", index=False)
        run(
            "fit weighted.csv -t label --weight w --drop c --seed 0 --centers "
            "points.npy --class-weight yes=2,no=1"
        )
        model = polysift.load("model.polysift")
        assert list(model.feature_names_in_) == ["a", "b"]
        assert model.n_centers_ == 3
        assert model.class_weight == {"yes": 2.0, "no": 1.0}
        own = FPCClassifier(
            centers=np.load("points.npy"), class_weight={"yes": 2.0, "no": 1.0}, random_state=0
        )
        own.fit(train[["a", "b"]], train["label"], train["w"])
        np.testing.assert_array_equal(model.coef_, own.coef_)
        run("fit weighted.csv -t 3 --columns a,1 -o other.polysift")
        assert list(polysift.load("other.polysift").feature_names_in_) == ["a", "b"]

    def test_what_is_printed(self, problem):
        shown = run("fit train.csv -t label --validation test.csv --seed 0")
        for text in (
            "model.polysift",
            "800 rows x 3 features of train.csv",
            "training",
            "validation",
            "accuracy",
            "area under ROC",
            "time",
        ):
            assert text in shown.stdout
        assert "iteration 1" in shown.stderr, "progress goes to standard error"
        assert "iteration 1," not in shown.stdout
        quiet = run("fit train.csv -t label -q --force")
        assert quiet.stdout == "" and quiet.stderr == ""

    def test_json(self, problem):
        shown = run("fit train.csv -t label --json --seed 3")
        result = json.loads(shown.stdout)
        model = polysift.load("model.polysift")
        assert result["n_centers"] == model.n_centers_
        assert result["classes"] == ["no", "yes"]
        assert result["random_state"] == 3
        train = pd.read_csv("train.csv")
        accuracy = model.score(train[["a", "b", "c"]], train["label"])
        assert result["training"]["accuracy"] == pytest.approx(accuracy, abs=1e-12)

    def test_dry_run(self, problem):
        shown = run("fit train.csv -t label --dry-run")
        assert "peak memory" in shown.stdout
        assert json.loads(run("fit train.csv -t label --dry-run --json").stdout)["rows"] == 800
        assert not Path("model.polysift").exists()

    def test_report(self, problem):
        run("fit train.csv -t label --report page.html --validation test.csv")
        page = Path("page.html").read_text()
        assert "polysift" in page and "validation" in page

    def test_warm_start(self, problem):
        first = run("fit train.csv -t label --solver converged --max-iter 3 --seed 0")
        assert "Warning: " in first.stderr and "max_iter=3" in first.stderr
        run("fit train.csv -t label --warm-start model.polysift --max-iter 40 -o more.polysift")
        one, more = polysift.load("model.polysift"), polysift.load("more.polysift")
        assert more.history_["objective"][-1] < one.history_["objective"][-1]
        np.testing.assert_array_equal(one.centers_, more.centers_)

    def test_a_warm_start_leaves_the_checkpoint_of_the_first_fit_alone(self, problem):
        run("fit train.csv -t label --degree 2 --seed 0 --checkpoint first")
        run("fit train.csv -t label --warm-start model.polysift --solver newton -o more.polysift")
        assert polysift.load("more.polysift").checkpoint is None

    def test_libsvm_needs_no_target(self, here, rng):
        lines = [
            f"{rng.integers(0, 2) * 2 - 1} 1:{a:.3f} 3:{b:.3f}" for a, b in rng.random((50, 2))
        ]
        Path("rows.svm").write_text("\n".join(lines) + "\n")
        run("fit rows.svm --degree 2")
        run("evaluate model.polysift rows.svm")
        run("predict model.polysift rows.svm -o out.csv")
        assert len(pd.read_csv("out.csv")) == 50

    @pytest.mark.parametrize(
        ("labels", "given", "expected"),
        [
            ([True, False], "True=2,false=1", {True: 2.0, False: 1.0}),
            ([1, -1], "1=2,-1=1", {1: 2.0, -1: 1.0}),
            (["1", "x"], "1=2,x=1", {"1": 2.0, "x": 1.0}),
        ],
    )
    def test_class_weight_has_the_labels_type(self, problem, labels, given, expected):
        train = pd.read_parquet("train.parquet")
        train["label"] = np.where(train["label"] == "yes", *labels)
        train.to_parquet("typed.parquet")
        for command in ("fit", "tune --degrees 1 --solvers paper"):
            run(f"{command} typed.parquet -t label --class-weight {given} -f --seed 0")
            assert polysift.load("model.polysift").class_weight == expected

    def test_a_place_that_was_taken_meanwhile(self, problem, monkeypatch):
        def fit(self, source, fit=FPCClassifier.fit):
            Path("model.polysift").write_text("somebody else's")
            return fit(self, source)

        monkeypatch.setattr(FPCClassifier, "fit", fit)
        error = run("fit train.csv -t label --seed 0", code=1).stderr
        assert Path("model.polysift").read_text() == "somebody else's"
        elsewhere = error.split("saved in ")[1].split(" instead")[0]
        assert polysift.load(elsewhere).random_state_ == 0
        Path(elsewhere).unlink()


class TestTune:
    def test_options_reach_the_search(self, problem):
        shown = run(
            "tune train.csv -t label --degrees 1,2 --n-centers 4,auto --scalers minmax,none", code=2
        )
        assert "n_centers" in shown.stderr
        shown = run(
            "tune train.csv -t label --degrees 1,2 --n-centers 3,8 --scalers "
            "minmax,none --rhos none,1e-3 --solvers paper --max-iter 10,20 --cv 3 "
            "--scoring roc_auc --seed 0 --one-standard-error --no-screen --top 2 "
            "--validation test.csv"
        )
        params = polysift.load("model.polysift").get_params()
        expected = {
            "degrees": [1, 2],
            "n_centers": [3, 8],
            "scalers": ["minmax", None],
            "rhos": [None, 1e-3],
            "solvers": "paper",
            "max_iter": [10, 20],
            "cv": 3,
            "scoring": "roc_auc",
            "one_standard_error": True,
            "screen": False,
        }
        assert {name: params[name] for name in expected} == expected
        table = shown.stdout.split("the best of")[1].splitlines()
        assert table[1].split()[:3] == ["rank", "score", "std"]
        assert table[2].split()[0] == "1" and table[3].split()[0] == "2"

    def test_json_and_share(self, problem):
        shown = run(
            "tune train.csv -t label --degrees 2 --solvers paper --cv 0.25 --json "
            "--report tuned.html"
        )
        result = json.loads(shown.stdout)
        assert result["best_params"]["degree"] == 2
        assert result["n_splits"] == 1
        assert 0.5 < result["best_score"] <= 1
        assert 'id="search"' in Path("tuned.html").read_text()


class TestUse:
    @pytest.fixture(autouse=True)
    def model(self, problem):
        run(f"fit train.csv -t label --seed 0 --calibration sigmoid {PAPERS}")

    @pytest.mark.parametrize("ending", ["csv", "parquet"])
    def test_predict(self, problem, ending):
        run(f"predict model.polysift test.{ending} -o out.{ending}")
        out = pd.read_csv("out.csv") if ending == "csv" else pd.read_parquet("out.parquet")
        model = polysift.load("model.polysift")
        assert list(out) == ["prediction"]
        assert (out["prediction"] == model.predict(problem[["a", "b", "c"]])).all()

    def test_a_model_knows_the_column_of_its_labels(self, problem):
        assert polysift.load("model.polysift").training_summary_["label"] == "label"
        named = run("evaluate model.polysift test.csv -t label --json").stdout
        assert run("evaluate model.polysift test.csv --json").stdout == named

    def test_evaluate(self, problem):
        judged = json.loads(run("evaluate model.polysift test.csv -t label --json").stdout)
        model = polysift.load("model.polysift")
        X, y = problem[["a", "b", "c"]], problem["label"]
        assert judged["accuracy"] == model.score(X, y)
        table = run("evaluate model.polysift test.csv -t label --report e.html")
        assert f"{100 * judged['accuracy']:.2f} %" in table.stdout
        assert "true class (down)" in table.stdout
        assert Path("e.html").exists()

    def test_inspect(self):
        shown = run("inspect model.polysift").stdout
        for text in (
            "800 rows",
            "polynomial kernel of degree 3",
            "a, b, c",
            "calibration='sigmoid'",
            "no (",
            "yes (",
        ):
            assert text in shown
        result = json.loads(run("inspect model.polysift --json").stdout)
        assert result["kind"] == "FPCClassifier"
        assert result["feature_names"] == ["a", "b", "c"]
        assert result["kernel"] == "polynomial" and result["selection"] is None
        assert "chosen" not in shown

    def test_inspect_says_what_was_chosen(self, problem):
        made = run("fit train.csv -t label --seed 0 --force --degree auto --rho auto").stdout
        model = polysift.load("model.polysift")
        trials = len(model.selection_["trials"])
        for shown in (made, run("inspect model.polysift").stdout):
            told = " ".join(shown.split())
            assert f"{model.kernel_} kernel of degree {model.degree_}, " in told
            assert f"chosen among {trials} feature maps on 800 rows" in told
            assert "solver lbfgs" in told
        result = json.loads(run("inspect model.polysift --json").stdout)
        assert result["kernel"] == model.kernel_ and result["selection"] == model.selection_

    def test_inspect_a_table(self):
        frame, y = every_kind()
        frame.assign(outcome=y, label=y).to_parquet("table.parquet")
        made = run("fit table.parquet -t label --degree 2 --n-centers 40 --seed 0 -o t.polysift")
        for shown in (made.stdout, run("inspect t.polysift").stdout):
            assert "2 numbers, 3 categories, 1 date, 2 left out" in shown
            assert "column 'row' is left out: its values are all different." in shown
            assert "column 'outcome' alone decides the label in 100.0 % of rows" in shown
        lines = run("inspect t.polysift").stdout.splitlines()
        colour = next(line for line in lines if line.startswith("colour"))
        assert colour.split()[:4] == ["colour", "category", "4", "red"]
        assert next(line for line in lines if line.startswith("unit")).split()[1] == "constant,"
        shown = run("inspect t.polysift --explain --rows table.parquet").stdout
        assert "levels of outcome" in shown and "several coordinates" in shown
        assert "levels of outcome" in run("inspect t.polysift --explain").stdout
        result = json.loads(run("inspect t.polysift --explain --json").stdout)
        assert result["column_kinds"][0] == "identifier" and len(result["column_notes"]) == 3
        assert {fact["column"] for fact in result["columns"]} == {0, 2, 3, 4, 5, 6, 7}
        assert "outcome" in result["explanation"]["levels"]

    def test_a_spline(self):
        frame, y = every_kind()
        frame.assign(label=y).to_parquet("table.parquet")
        options = "--kernel spline --degree 2 --n-centers 40 --solver paper --seed 0 -o s.polysift"
        run(f"fit table.parquet -t label {options} --report s.html")
        assert polysift.load("s.polysift").kernel == "spline"
        shown = run("inspect s.polysift").stdout
        assert "spline kernel of degree 2, 40 centers, solver paper, seed 0" in shown
        assert json.loads(run("inspect s.polysift --json").stdout)["kernel"] == "spline"
        shown = run("inspect s.polysift --explain --rows table.parquet").stdout
        assert "levels of colour" in shown and "spline kernel is no polynomial" in shown
        page = Path("s.html").read_text(encoding="utf-8")
        assert "spline kernel classifier of degree 2" in page
        assert "--kernel" in run("fit table.parquet -t label --kernel cubic", code=2).stderr

    def test_inspect_explains(self, problem):
        expected = polysift.explain(polysift.load("model.polysift"), problem[["a", "b", "c"]])
        shown = run("inspect model.polysift --explain --rows test.csv").stdout
        for entry in expected.pairs():
            assert " & ".join(entry["pair"]) in shown
        assert f"{expected.features()[0]['attribution']:.3g}" in shown
        assert f"Over {len(problem):,} rows." in shown
        result = json.loads(run("inspect model.polysift --explain --json").stdout)["explanation"]
        assert result["reference"].startswith("the model's")
        assert {entry["feature"] for entry in result["features"]} == {"a", "b", "c"}
        small = run("inspect model.polysift --explain --max-monomials 3").stdout
        assert "--max-monomials 20" in small and "attribution" in small
        assert "--explain" in run("inspect model.polysift --rows test.csv", code=2).stderr

    def test_onnx(self, problem):
        ort = pytest.importorskip("onnxruntime", reason="the export needs polysift[onnx]")
        run("export model.polysift model.onnx --input-type float32")
        session = ort.InferenceSession("model.onnx")
        rows = problem[["a", "b", "c"]].astype(np.float32)
        label = session.run(["label"], {"X": rows.to_numpy()})[0]
        assert (label == polysift.load("model.polysift").predict(rows)).all()


class TestMistakes:
    """Each gets an exit code, a message that helps, and costs nothing."""

    @pytest.mark.parametrize(
        ("command", "code", "texts"),
        [
            ("fit absent.csv -t label", 1, ["no file absent.csv"]),
            ("fit absent.csv -t label -o kept.polysift", 1, ["no file absent.csv"]),
            ("predict absent.polysift train.csv -o kept.csv", 1, ["no model file absent"]),
            ("fit train.csv -t lable", 1, ["no column 'lable'", "mean 'label'"]),
            ("fit train.csv", 2, ["--target", "columns are a, b, c, label"]),
            ("fit train.csv -t label --numeric a --category a", 2, ["'a' is named twice"]),
            ("fit train.csv -t label --category label", 1, ["'label'", "no feature"]),
            ("fit train.csv -t a --numeric label", 1, ["'no'", "row 0", "--category 'label'"]),
            ("fit garbage.parquet -t label", 1, ["garbage.parquet", "not a readable"]),
            ("fit train.csv -t label -o none/m.polysift", 2, ["folder none"]),
            ("fit train.csv -t label -o kept.polysift", 2, ["--force"]),
            ("fit train.csv -t label --report kept.polysift", 2, ["--force"]),
            ("fit train.csv -t label -o .", 2, ["folder"]),
            ("fit train.csv -t label --degree 0", 2, ["--degree"]),
            ("fit train.csv -t label --degree two", 2, ["--degree"]),
            ("fit train.csv -t label --n-centers few", 2, ["--n-centers", "auto"]),
            ("fit train.csv -t label --solver best", 2, ["--solver"]),
            ("fit train.csv -t label --alpha -1", 2, ["alpha must be"]),
            ("fit train.csv -t label --time-limit soon", 2, ["--time-limit"]),
            ("fit train.csv -t label --memory-limit 1kB", 1, ["memory_limit"]),
            ("fit train.csv -t label --class-weight yes", 2, ["--class-weight"]),
            ("fit train.csv -t label --centers no.npy", 2, ["--centers", "no.npy"]),
            ("fit train.csv -t label --centers odd.npy", 2, ["--centers", "odd.npy"]),
            ("fit train.csv -t label --validation no.csv", 1, ["no.csv"]),
            ("fit train.csv -t label --validation train.csv", 2, ["itself"]),
            ("fit train.csv -t label --columns a --drop b", 2, ["drop"]),
            ("fit train.csv -t label --column-types label", 2, ["--column-types"]),
            ("fit train.csv -t label --delimiter ;;", 2, ["--delimiter"]),
            ("fit train.csv -t label --memory-limit much", 2, ["--memory-limit"]),
            ("fit train.csv -t label --seed -3", 2, ["--seed"]),
            ("fit '' -t label", 2, ["empty"]),
            ("fit train.csv -t label -o m --report m", 2, ["same file"]),
            ("tune train.csv -t label --cv 1", 2, ["--cv"]),
            ("fit train.csv -t label --wat", 2, ["--wat"]),
            ("fit train.csv -t label --warm-start no", 1, ["model file no"]),
            ("tune train.csv -t label --degrees x", 2, ["degrees"]),
            ("tune train.csv -t label --cv lots", 2, ["--cv"]),
            ("predict kept.polysift test.csv", 2, ["--output"]),
            ("predict kept.polysift test.csv -o x.txt", 2, [".parquet or .csv"]),
            ("predict kept.polysift test.csv -o x.csv", 1, ["kept.polysift"]),
            ("predict train.csv test.csv -o x.csv", 1, ["train.csv"]),
            ("evaluate absent.polysift test.csv -t label", 1, ["absent.polysift"]),
            ("inspect .", 1, ["."]),
            ("export kept.polysift none/x.onnx", 2, ["folder none"]),
            ("demo --output none/x.png", 2, ["folder none"]),
            ("demo --output x.xyz", 2, [".png"]),
            ("fit train.csv -t label --validation numbers.csv", 1, ["never be equal"]),
            ("wat", 2, ["wat"]),
        ],
    )
    def test_message(self, problem, command, code, texts):
        Path("kept.polysift").write_text("precious")
        Path("garbage.parquet").write_text("PAR1 or not")
        Path("odd.npy").write_bytes(b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f8',\n")
        problem.assign(label=1).to_csv("numbers.csv", index=False)
        before = {path.name: path.read_bytes() for path in Path().iterdir()}
        outcome = run(command, code)
        for text in texts:
            assert text in outcome.stderr.replace("\n", " ")
        assert "Traceback" not in outcome.stderr
        assert outcome.stdout == ""
        after = {path.name: path.read_bytes() for path in Path().iterdir()}
        assert after == before, "nothing is lost, and nothing half-written stays"

    def test_a_model_that_does_not_fit_the_data(self, problem):
        run("fit train.csv -t label --seed 0 --loss hinge")
        problem[["a", "label"]].to_csv("short.csv", index=False)
        outcome = run("predict model.polysift short.csv -o x.csv", code=1)
        assert "no column 'b'" in outcome.stderr
        problem.assign(label=1).to_csv("numbers.csv", index=False)
        outcome = run("evaluate model.polysift numbers.csv -t label", code=1)
        assert "can never be equal" in outcome.stderr
        outcome = run("predict model.polysift test.csv -o x.csv --proba", code=1)
        assert "calibration" in outcome.stderr
        assert not Path("x.csv").exists()

    @pytest.mark.parametrize("place", ["before", "after"])
    def test_debug_shows_where(self, problem, place):
        command = "fit absent.csv -t label"
        outcome = run(f"--debug {command}" if place == "before" else f"{command} --debug", code=1)
        assert "Traceback" in outcome.stderr and "readers.py" in outcome.stderr

    def test_brackets_in_names_are_not_markup(self, here):
        assert "matches [red]x[/red].csv" in run("fit [red]x[/red].csv", code=1).stderr


class TestOutputs:
    """What is there is not lost, and what is printed can be piped."""

    @pytest.mark.parametrize("form", ["train.csv", "./train.csv", "{here}/train.csv", "link.csv"])
    def test_what_is_read_is_not_replaced(self, problem, here, form):
        Path("link.csv").symlink_to("train.csv")
        run("fit train.csv -t label -q")
        before = {path.name: path.read_bytes() for path in here.iterdir()}
        output = form.format(here=here)
        for command in (
            f"fit train.csv -t label -o {output}",
            f"fit train.csv -t label -o new.polysift --report {output}",
            f"tune test.csv -t label --validation train.csv -o {output}",
            f"predict model.polysift train.csv -o {output}",
            f"evaluate model.polysift train.csv -t label --report {output}",
            f"export model.polysift {output.replace('train.csv', 'model.polysift')}",
        ):
            if "export" in command and "link" in command:
                continue
            assert "is read by this command" in run(f"{command} --force", 2).stderr
        assert {path.name: path.read_bytes() for path in here.iterdir()} == before

    def test_nor_are_files_of_a_folder_or_pattern(self, problem, here):
        Path("parts").mkdir()
        Path("train.parquet").rename("parts/1.parquet")
        run("fit parts -t label -q -o parts/model.polysift")
        run("fit parts -t label -q -o parts/model.polysift --force")  # no data, so it is replaced
        for data in ("parts", "parts/*.parquet"):
            command = f"predict parts/model.polysift {data} -o parts/1.parquet --force"
            assert "is read by this command" in run(command, 2).stderr
        assert "label" in pd.read_parquet("parts/1.parquet")

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
    def test_no_device_is_replaced(self, problem):
        os.mkfifo("pipe")
        assert "a device or a pipe" in run("fit train.csv -t label -o pipe --force", 2).stderr
        assert Path("pipe").is_fifo()

    def test_a_folder_that_cannot_be_written_to_is_found_before_the_work(
        self, problem, monkeypatch
    ):
        def refuse(**_):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("tempfile.TemporaryFile", refuse)
        monkeypatch.setattr(FPCClassifier, "fit", None)
        assert "cannot be written to" in run("fit train.csv -t label", 2).stderr

    def test_a_mistake_after_training_tells_of_the_model(self, problem):
        problem.assign(a=np.inf).to_parquet("endless.parquet")
        told = run("fit train.csv -t label --validation endless.parquet", 1).stderr
        assert "The model is saved in model.polysift." in told
        polysift.load("model.polysift")

    def test_so_does_an_interrupt(self, problem, monkeypatch):
        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr("polysift.reporting.evaluation.evaluate", interrupt)
        told = run("fit train.csv -t label --validation test.csv", 130).stderr
        assert "Interrupted: The model is saved in model.polysift." in told

    @pytest.mark.parametrize("command", ["fit", "tune --degrees 1 --n-centers 5 --solvers paper"])
    def test_the_command_of_a_report_gives_the_same_model(self, problem, monkeypatch, command):
        words = f"{command} train.csv -t label --report page.html --force"
        monkeypatch.setattr(sys, "argv", ["polysift", *split(words)])
        run(words)
        first = polysift.load("model.polysift")
        told = re.search(r"polysift ((?:fit|tune)[^<]*--seed \d+)", Path("page.html").read_text())
        run(told[1])
        again = polysift.load("model.polysift")
        X = np.random.default_rng(0).random((50, 3))
        with warnings.catch_warnings(action="ignore"):  # of arrays without names
            np.testing.assert_array_equal(first.decision_function(X), again.decision_function(X))

    def test_names_with_commas(self, here, rng):
        X, y = noisy_problem(rng, 200, 3)
        pd.DataFrame(X, columns=["a,b", "c", "d e"]).assign(y=y).to_csv("d.csv", index=False)
        run("fit d.csv -t y --columns '\"a,b\", d e'")
        assert list(polysift.load("model.polysift").feature_names_in_) == ["a,b", "d e"]

    def test_advice_names_options(self, here):
        Path("gap.csv").write_text("a,y\n1,p\n2,\n3,n\n4,p\n")
        assert "--column-types 'y=string'" in run("fit gap.csv -t y", 1).stderr
        Path("bare.csv").write_text("1,0\n2,1\n3,0\n")
        told = run("fit bare.csv -t y", 1).stderr
        assert "--header" in told and "header=True" not in told

    def test_a_pipe_gets_whole_lines(self, problem):
        run("fit train.csv -t label --solver converged --max-iter 2 -q")
        lines = run("inspect model.polysift").stdout.splitlines()
        assert lines == [line.rstrip() for line in lines]
        assert [line.split()[0] for line in lines][:2] == ["file", "trained"]
        assert max(map(len, lines)) > 80

    def test_a_reader_that_leaves(self, problem):
        run("fit train.csv -t label -q")
        for command in (
            "inspect model.polysift",
            "evaluate model.polysift test.csv -t label --json",
        ):
            read, write = os.pipe()
            os.close(read)
            words = [str(PROGRAM), *split(command)]
            done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, text=True)
            os.close(write)
            assert done.returncode == 1 and done.stderr == ""

    def test_letters_that_the_terminal_does_not_have(self, here, rng):
        X, y = noisy_problem(rng, 200, 2)
        pd.DataFrame(X, columns=["größe", "b"]).assign(y=y).to_csv("d.csv", index=False)
        run("fit d.csv -t y -q")
        words = [str(PROGRAM), "inspect", "model.polysift"]
        ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
        done = subprocess.run(words, capture_output=True, text=True, env=ascii_only)
        assert done.returncode == 0 and r"gr\xf6\xdfe" in done.stdout

    def test_many_classes_and_long_labels(self, here, rng):
        frame = pd.DataFrame(rng.random((90, 2)), columns=["a", "b"])
        frame["y"] = [f"{k % 30:02d}{'z' * 500}" for k in range(90)]
        frame.to_csv("d.csv", index=False)
        run("fit d.csv -t y -q")
        shown = run("evaluate model.polysift d.csv -t y").stdout
        assert "the first 20 of 30 classes" in shown
        assert "z" * 50 not in shown + run("inspect model.polysift").stdout


LONG = (
    "fit long.parquet -t y --solver converged --max-iter 3000 --tol 1e-9 --degree 4 --seed 0 "
    "--jobs 1"
)
"""It says more than a pipe holds, so it waits in the middle for what reads it."""

KILLED = """
import os, signal, sys
from polysift.__main__ import main
from polysift.runtime import checkpoints
from polysift.solvers.admm import Admm

checkpoints.MIN_SECONDS_BETWEEN_SAVES = checkpoints.SAVE_COST_MULTIPLE = 0
step = Admm.step

def dying(run, *args):
    if run.iterates == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    step(run, *args)

Admm.step = dying
main()
"""


class TestStopping:
    @pytest.fixture(autouse=True)
    def data(self, here, rng):
        X, y = noisy_problem(rng, 60_000, 6)
        pd.DataFrame(X, columns=list("abcdef")).assign(y=y).to_parquet("long.parquet")

    @staticmethod
    def start_until(command: str, seen: str, **environment: str) -> subprocess.Popen[str]:
        """Start the installed command, and return it once it has said something."""
        process = subprocess.Popen(
            [str(PROGRAM), *split(command)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )
        for line in process.stderr:
            if seen in line:
                return process
        raise AssertionError(f"it ended with {process.wait()} without saying {seen!r}")

    def test_interrupt(self):
        process = self.start_until(LONG, "iteration 3,")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=GUARD)
        assert process.returncode == 130
        assert "Interrupted: the latest model is in model.polysift" in stderr
        assert "Traceback" not in stderr
        assert stdout == ""
        model = polysift.load("model.polysift")
        assert model.status_ == "interrupted" and model.n_iter_ >= 3

    def test_interrupt_before_there_is_a_model(self):
        # Python loses what strikes within a callback of its import system.
        for module in ("numpy.linalg", "scipy.linalg", "sklearn.utils", "sklearn.base"):
            process = self.start_until(LONG, f" {module}\n", PYTHONPROFILEIMPORTTIME="1")
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=GUARD)
            if process.returncode != 0:
                break
            Path("model.polysift").unlink()
        assert process.returncode == 130
        assert "Traceback" not in stderr
        assert not Path("model.polysift").exists()

    def test_resume_after_a_kill(self):
        short = LONG.replace("3000", "40")
        run(f"{short} -o whole.polysift -q")
        command = f"{short} --checkpoint state -o resumed.polysift"
        killed = subprocess.run([sys.executable, "-c", KILLED, *split(command)], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert not Path("resumed.polysift").exists() and Path("state", "solver.state").exists()
        run(command)
        whole, resumed = (polysift.load(f"{name}.polysift") for name in ("whole", "resumed"))
        np.testing.assert_array_equal(whole.coef_, resumed.coef_)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_demo_and_fit_take_every_solver(here, problem, solver):
    run(f"demo --rows 2000 --degree 2 --solver {solver}")
    run(f"fit train.csv -t label --degree 1 --tol 0.1 -q --solver {solver}")
    assert polysift.load("model.polysift").solver == solver


def test_demo(here):
    shown = run("demo --rows 20000")
    for word in (
        "rows",
        "degree",
        "centers",
        "iterations",
        "training time",
        "rows per second",
        "peak memory",
        "train error",
        "test error",
        "Bayes",
    ):
        assert word in shown.stdout
    assert Path("polysift-demo.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in here.iterdir()] == ["polysift-demo.png"]
