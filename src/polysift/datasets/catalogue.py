"""The catalogue of the paper's real data sets: content, sizes in its tables, public sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

UCI_ARCHIVE = "https://archive.ics.uci.edu/static/public/"
"""The address of the UCI repository's archives."""

OPENML_PAGE = "https://www.openml.org/d/"
"""The address of an OpenML data set's page, which offers the file."""


@dataclass(frozen=True)
class Printed:
    """The facts of a data set in the paper's tables.

    Attributes
    ----------
    table : str
        The number of the table: "I" or "V".
    rows, attributes : int
        Its size; the rows of Table V are the sum of its three parts.
    majority : float or None
        The share of the larger class in percent, with two digits.
    parts : tuple of int, or None
        Rows for training, validation and test.
    ordered : bool
        Whether the published order of the rows defines these parts.
    """

    table: str
    rows: int
    attributes: int
    majority: float | None = None
    parts: tuple[int, int, int] | None = None
    ordered: bool = False


@dataclass(frozen=True)
class Entry:
    """One data set.

    Attributes
    ----------
    name, title : str
        The name that ``load`` takes, and the publisher's title.
    positive : str
        The meaning of the label +1.
    features : tuple of str
        The names of the attributes that ``load`` returns.
    files : tuple of tuples of str
        The names under which it is published; each tuple is a set of files that suffices. The first
        one is what the public source has.
    printed : Printed or None
        The paper's facts.
    counts : tuple of int, or None
        The published rows of the classes -1 and +1.
    aliases : tuple of str
        Other names.
    archive : str or None
        The path of its archive in the UCI repository.
    openml : int or None
        Its number on OpenML, where the UCI repository's files need software that is not at hand.
    single : bool
        Whether single precision holds its values: it was published so, or they are small integers.
    drop : tuple of str
        Columns that are not attributes.
    digests : tuple of str, or None
        Of the published content: in its order, and of the rows in any order.
    reasons : mapping of str to str
        Why "rows", "attributes" or "majority" differ from what the paper prints.
    notes : tuple of str
        Further remarks for users.
    """

    name: str
    title: str
    positive: str
    features: tuple[str, ...]
    files: tuple[tuple[str, ...], ...]
    printed: Printed | None
    counts: tuple[int, int] | None
    aliases: tuple[str, ...] = ()
    archive: str | None = None
    openml: int | None = None
    single: bool = False
    drop: tuple[str, ...] = ()
    digests: tuple[str, str] | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> int | None:
        """The number of published rows, where it is known."""
        return None if self.counts is None else sum(self.counts)

    @property
    def address(self) -> str | None:
        """The address of its public source."""
        if self.openml is not None:
            return f"{OPENML_PAGE}{self.openml}"
        return None if self.archive is None else f"{UCI_ARCHIVE}{self.archive}"


def _numbered(stem: str, count: int) -> tuple[str, ...]:
    return tuple(f"{stem}{j}" for j in range(1, count + 1))


_HIGGS = (
    *("lepton_pT", "lepton_eta", "lepton_phi", "missing_energy_magnitude", "missing_energy_phi"),
    *(f"jet_{j}_{part}" for j in (1, 2, 3, 4) for part in ("pt", "eta", "phi", "btag")),
)
_SUSY = (
    *(f"lepton_{j}_{part}" for j in (1, 2) for part in ("pT", "eta", "phi")),
    *("missing_energy_magnitude", "missing_energy_phi"),
)

_ENTRIES = (
    Entry(
        name="breast_cancer",
        title="Breast Cancer Wisconsin (Original)",
        positive="malignant",
        features=(
            *("clump_thickness", "unif_cell_size", "unit_cell_shape", "marg_adhesion"),
            *("single_epith_cell_size", "bare_nuclei", "blend_chrom", "norm_nuclei", "Mitosis"),
        ),
        files=(("breast-cancer-wisconsin.data",),),
        printed=Printed("I", 683, 9, 64.44),
        counts=(444, 239),
        aliases=("breast",),
        archive="15/breast+cancer+wisconsin+original.zip",
        digests=(
            "8807497b6ce112f2b1726acb0f7b2869e9f35feeaef15aff0919ed8058673c4d",
            "75a771e99ef832102bc0081a5dcf1a1e15fdcb6ba7c935526da7b5174e77f24c",
        ),
        reasons={"majority": "no count out of 683 rows makes the printed share"},
    ),
    Entry(
        name="banknote",
        title="Banknote Authentication",
        positive="class 1",
        features=("variance", "skewness", "kurtosis", "entropy"),
        files=(("data_banknote_authentication.txt",),),
        printed=Printed("I", 1372, 4, 55.54),
        counts=(762, 610),
        aliases=("banknote_authentication",),
        archive="267/banknote+authentication.zip",
        digests=(
            "a7253cd492c1d262aa822d6c6eeaa5c9be7b13f7032986d1bd2d5c04b7d3634f",
            "73357e11acdd76b12ddc525709e2d9d0a1449796a6b5769b5bbad9e872d1b91d",
        ),
    ),
    Entry(
        name="seismic_bumps",
        title="Seismic-bumps",
        positive="a hazardous bump in the next shift",
        features=(
            *("seismic", "seismoacoustic", "shift", "genergy", "gpuls", "gdenergy", "gdpuls"),
            *("ghazard", "nbumps", "nbumps2", "nbumps3", "nbumps4", "nbumps5", "nbumps6"),
            *("nbumps7", "nbumps89", "energy", "maxenergy"),
        ),
        files=(("seismic-bumps.arff",),),
        printed=Printed("I", 2584, 18, 93.42),
        counts=(2414, 170),
        aliases=("seismic",),
        archive="266/seismic+bumps.zip",
        digests=(
            "5f126ac2d9c7b95476c819d517c7175ca210b0511cb12bcb7ebe7b617dd6883f",
            "9721956a9246f085d46033227b7d0c3f2d150852cbd9d0afbd189205a3b1cd79",
        ),
    ),
    Entry(
        name="musk2",
        title="Musk (Version 2)",
        positive="musk",
        features=_numbered("f", 166),
        files=(("musk.arff",), ("clean2.data",)),
        printed=Printed("I", 6598, 166, 84.59),
        counts=(5581, 1017),
        openml=1116,
        digests=(
            "0737783ed7c781283cc2bbf5e43dd691943bea59e661f69018a018e9880feba8",
            "8bbff186dd5c583e10aba5c421650d7923d6832c871b2640af4f36508ab49284",
        ),
    ),
    Entry(
        name="htru2",
        title="HTRU2",
        positive="pulsar",
        features=tuple(
            f"{statistic}_{curve}"
            for curve in ("ip", "dmsnr")
            for statistic in ("mean", "std", "kurtosis", "skewness")
        ),
        files=(("HTRU_2.csv",),),
        printed=Printed("I", 17898, 8, 90.84),
        counts=(16259, 1639),
        archive="372/htru2.zip",
        digests=(
            "f56581f44c344a77962635c22d6954f5f8fc191d39e7581f9ef39f99263c139d",
            "f3dc6f68ad6e1d60263b0fb0945a920ae89280bc44c8dd9abc4b238143fadfa9",
        ),
    ),
    Entry(
        name="magic",
        title="MAGIC Gamma Telescope",
        positive="gamma (signal)",
        features=(
            *("fLength", "fWidth", "fSize", "fConc", "fConc1", "fAsym", "fM3Long", "fM3Trans"),
            *("fAlpha", "fDist"),
        ),
        files=(("magic04.data",),),
        printed=Printed("I", 19020, 10, 64.84),
        counts=(6688, 12332),
        aliases=("magic_gamma_telescope",),
        archive="159/magic+gamma+telescope.zip",
        digests=(
            "9c3aeada96973e36315d2354d8d6301593ba451d9849376b78855d52786cbf16",
            "2bbf9c5a6daa7545cadf8ae7d35d637e51256d7d5ebd9ed47796e7a5cc25149d",
        ),
    ),
    Entry(
        name="occupancy",
        title="Occupancy Detection",
        positive="occupied",
        features=("Temperature", "Humidity", "Light", "CO2", "HumidityRatio"),
        files=(("datatraining.txt", "datatest.txt", "datatest2.txt"),),
        printed=Printed("I", 20560, 5, 76.90),
        counts=(15810, 4750),
        archive="357/occupancy+detection.zip",
        digests=(
            "d965d1b7521d286aeaa102389f38cfae01448cbaab619e782c358f6b6f1e370e",
            "fce9f49c1400a037ba355e882b959f1e6f645fd13d8071abb65c30322fbb0b3c",
        ),
    ),
    Entry(
        name="credit_default",
        title="Default of Credit Card Clients",
        positive="default in the next month",
        features=(
            *("LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE", "PAY_0", "PAY_2", "PAY_3"),
            *("PAY_4", "PAY_5", "PAY_6", *_numbered("BILL_AMT", 6), *_numbered("PAY_AMT", 6)),
        ),
        files=(("default-of-credit-card-clients.arff",), ("UCI_Credit_Card.csv",)),
        printed=Printed("I", 30000, 24, 77.88),
        counts=(23364, 6636),
        aliases=("default", "default_of_credit_card_clients"),
        openml=42477,
        drop=("ID",),
        digests=(
            "87c2fd053ebfb8c69e3a007989b64153ab7e78a8f7058de4ee19d34d40307140",
            "8c76ff6259e6a2b216a19f073174ea68dc6dd9d26c5ab64238669a5a64cfd58f",
        ),
        reasons={
            "attributes": "the paper counts ID, the number of the row, which is left out here"
        },
    ),
    Entry(
        name="skin",
        title="Skin Segmentation",
        positive="skin",
        features=("B", "G", "R"),
        files=(("Skin_NonSkin.txt",),),
        printed=Printed("I", 245057, 3, 79.25),
        counts=(194198, 50859),
        aliases=("skin_nonskin",),
        archive="229/skin+segmentation.zip",
        digests=(
            "ca6e070d6514c1ddd16e46b7a45d3510134a86bea82939fc96f1d76f30d2edf3",
            "3f11ebf8bc4585db50860c623f830a805650ebf44648a7e42c2a63a009d020d8",
        ),
    ),
    Entry(
        name="covtype_binary",
        title="Covertype, type 2 against the rest",
        positive="cover type 2",
        features=(
            *("Elevation", "Aspect", "Slope", "Horizontal_Distance_To_Hydrology"),
            *("Vertical_Distance_To_Hydrology", "Horizontal_Distance_To_Roadways"),
            *("Hillshade_9am", "Hillshade_Noon", "Hillshade_3pm"),
            *("Horizontal_Distance_To_Fire_Points", *_numbered("Wilderness_Area", 4)),
            *_numbered("Soil_Type", 40),
        ),
        files=(("covtype.data.gz",), ("covtype.data",)),
        printed=None,
        counts=(297711, 283301),
        aliases=("covtype",),
        archive="31/covertype.zip",
        digests=(
            "a48019c04b86d8956d2a61253f694ef4b8d7e6c6905bd70b3a0b3cc303ff28dc",
            "ac483d95e56485709a219fc449cdaa0cfe2451d5b9642b67b2c2816bbace4bb6",
        ),
        notes=("This set is not in the paper.",),
    ),
    Entry(
        name="mnist38",
        title="MNIST, digits 3 and 8",
        positive="digit 8",
        features=_numbered("pixel", 784),
        files=(("mnist_784.arff",), ("mnist.npz",)),
        printed=Printed("V", 62581, 784, parts=(35_000, 5_000, 22_581)),
        counts=(7141, 6825),
        openml=554,
        single=True,
        digests=(
            "f81a8d89358a8e42227837a9d4b39e742331568f6b35f052f7389a62077146ef",
            "b255765e0cf8aced5605d5d17f5bcb06e4ec9859f033738d9c6d840a969fbfd7",
        ),
        reasons={"rows": "MNIST has no more digits 3 and 8; its own training set comes first"},
        notes=("The paper's text says 782 attributes, its Table V 784; MNIST has 784 pixels.",),
    ),
    Entry(
        name="higgs",
        title="HIGGS",
        positive="signal",
        features=_HIGGS,
        files=(("HIGGS.csv.gz",), ("HIGGS.csv",)),
        printed=Printed("V", 11_000_000, 21, parts=(10_000_000, 500_000, 500_000), ordered=True),
        counts=(5_170_877, 5_829_123),
        archive="280/higgs.zip",
        single=True,
    ),
    Entry(
        name="higgs_11k",
        title="HIGGS, a sample",
        positive="signal",
        features=_HIGGS,
        files=(),
        printed=None,
        counts=(5163, 5821),
        digests=(
            "5fdfae64b3c6371577ba669347575a265dfc89cc54bbc276b47a8fd2e5b507f8",
            "50a08c454247ee544c08c284dc269386783acff876e154fd2c27b0d653ed6d39",
        ),
        notes=(
            "This is a sample of 10,984 of the 11,000,000 rows of HIGGS; the paper uses them all.",
        ),
    ),
    Entry(
        name="susy",
        title="SUSY",
        positive="signal",
        features=_SUSY,
        files=(("SUSY.csv.gz",), ("SUSY.csv",)),
        printed=Printed("V", 5_000_000, 8, parts=(4_000_000, 500_000, 500_000), ordered=True),
        counts=(2_712_173, 2_287_827),
        archive="279/susy.zip",
        single=True,
    ),
    Entry(
        name="gisette",
        title="Gisette",
        positive="class +1",
        features=_numbered("x", 5000),
        files=(
            tuple(f"gisette_{s}.{e}" for s in ("train", "valid") for e in ("data", "labels")),
            ("gisette_train.data", "gisette_train.labels"),
        ),
        printed=Printed("V", 13_500, 5000, parts=(6_000, 1_000, 6_500)),
        counts=(3500, 3500),
        archive="170/gisette.zip",
        reasons={
            "rows": "the labels of the test rows are not public; the 6,000 rows for training come "
            "first, the 1,000 for validation after them"
        },
    ),
    Entry(
        name="dogs_vs_cats",
        title="Dogs vs. Cats, features of GoogLeNet",
        positive="the larger of the file's two labels",
        features=_numbered("feature", 1024),
        files=(("dogs_vs_cats.mat",),),
        printed=Printed("V", 28_911, 1024, parts=(2_000, 1_911, 25_000)),
        counts=None,
    ),
)

ENTRIES: Mapping[str, Entry] = {entry.name: entry for entry in _ENTRIES}
"""All data sets, by name."""

NAMES = tuple(ENTRIES)
"""The names of all real data sets."""

UCI = NAMES[:9]
"""The names of the nine data sets of the paper's Table I, in its order."""


def find_entry(name: object) -> Entry:
    """Return a data set by its name or by the paper's, in any case; or raise a ValueError."""
    key = name.strip().lower().replace("-", "_") if isinstance(name, str) else None
    for entry in _ENTRIES:
        if key in (entry.name, *entry.aliases):
            return entry
    short = ", ".join(alias for entry in _ENTRIES for alias in entry.aliases)
    raise ValueError(
        f"name must be one of {', '.join(NAMES)}, or one of the paper's names {short}, in upper or "
        f"lower case; got {name!r}."
    )
