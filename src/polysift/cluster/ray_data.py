"""A Ray Dataset as a source: each block is a unit, and stays in Ray's object store."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from polysift.cluster.ray_cluster import load_ray
from polysift.data.arrow import ArrowSource, load_pyarrow
from polysift.data.arrow_units import Unit
from polysift.data.columns import Roles, resolve_names
from polysift.data.source import DataSource

NAME = "the Ray Dataset"


def open_dataset(dataset: Any, roles: Roles) -> DataSource:
    """Return the rows of a ``ray.data.Dataset``, which is executed here, once.

    Its blocks lie in Ray's object store, in the order of the Dataset, as long as the source lives.
    This process gets their sizes and types; the rows go to the workers that read them.
    """
    load_pyarrow()
    with _quiet_and_in_order(dataset):
        blocks = dataset.materialize()
        bundles = list(blocks.iter_internal_ref_bundles())
        declared = blocks.schema()
    refs = [ref for bundle in bundles for ref in bundle.block_refs]
    counts = [int(about.num_rows) for bundle in bundles for about in bundle.metadata]
    if not any(counts):
        raise ValueError(
            f"There are no rows in {NAME}; at least one is needed. See whether a filter drops "
            "them all."
        )
    schema, arrow = _schema(declared, refs, counts)
    features, target, weight = resolve_names(schema.names, NAME, roles)
    for name in filter(None, [*features, target, weight]):
        _refuse_arrays(schema.field(name))
    source = ArrowSource(_units(refs, counts, schema), schema, features, target, weight)
    if arrow:
        # Such a block is mapped from the store, which Ray does not count as memory of a worker. One
        # of pandas is converted by the task that loads it, and counts like a part of a file.
        source.unit_bytes = 0
    return source


@contextmanager
def _quiet_and_in_order(dataset: Any) -> Iterator[None]:
    """Have a Dataset keep the order of its rows, and print nothing but warnings."""
    context = dataset.context
    options, bars = context.execution_options, context.enable_progress_bars
    in_order = options.preserve_order
    printing = [
        handler
        for handler in logging.getLogger("ray.data").handlers
        if isinstance(handler, logging.StreamHandler)
    ]
    context.enable_progress_bars, options.preserve_order = False, True
    for handler in printing:
        handler.addFilter(_is_warning)
    try:
        yield
    finally:
        context.enable_progress_bars, options.preserve_order = bars, in_order
        for handler in printing:
            handler.removeFilter(_is_warning)


def _is_warning(record: logging.LogRecord) -> bool:
    # Ray also warns that there is no progress bar.
    return record.levelno >= logging.WARNING and ".progress" not in record.name


def _schema(declared: Any, refs: list[Any], counts: list[int]) -> tuple[Any, bool]:
    """Return the columns of a Dataset, and whether its blocks are Arrow's.

    Ray declares those of the first block. Where they are not Arrow's, or that block has no rows to
    infer a type from, those of the first block with rows are taken.
    """
    import pyarrow as pa

    base = declared.base_schema
    arrow = isinstance(base, pa.Schema)
    if arrow and not any(pa.types.is_null(field.type) for field in base):
        fields = [field for field in base if field.name in declared.names]  # some are Ray's own
    else:
        first = next(number for number, rows in enumerate(counts) if rows)
        block = _get_block(refs[first], first)
        fields = [pa.field(name, _type_of(block, name)) for name in _names(block)]
    return pa.schema([_decoded(field) for field in fields]), arrow


def _type_of(block: Any, name: str) -> Any:
    import pyarrow as pa

    try:
        return _column(block, name).type
    except ValueError:  # raised again where the column is used
        return pa.null()


def _decoded(field: Any) -> Any:
    """Return a field of plain values in place of one with a dictionary: blocks differ in theirs."""
    import pyarrow as pa

    return field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field


def _refuse_arrays(field: Any) -> None:
    import pyarrow as pa

    if pa.types.is_nested(field.type) or isinstance(field.type, pa.BaseExtensionType):
        raise ValueError(
            f"Column {field.name!r} of {NAME} holds {field.type} in each row, where one value is "
            "needed. Make a column of each of its values first, for example with "
            "Dataset.map_batches, or leave it out with open_data(..., columns=[...])."
        )


def _units(refs: list[Any], counts: list[int], schema: Any) -> list[Unit]:
    units, first = [], 0
    for number, (ref, rows) in enumerate(zip(refs, counts, strict=True)):
        if rows:
            # Not resident: a partition that is sent takes along the reference, not the rows.
            load = partial(_load, ref, number, schema)
            units.append(Unit(rows, NAME, first, load, stored=False))
        first += rows
    return units


def _load(ref: Any, number: int, schema: Any, columns: list[str]) -> Any:
    """Return columns of a block as a table, with the types of the schema."""
    import pyarrow as pa

    block, fields = _get_block(ref, number), [schema.field(name) for name in columns]
    arrays = [_as_declared(block, field, number) for field in fields]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _get_block(ref: Any, number: int) -> Any:
    """Return a block, which Ray transfers or computes again where necessary."""
    ray = load_ray()
    failures, gone = ray.exceptions, f"{NAME} went with the Ray cluster that held it: open it anew."
    if not ray.is_initialized():  # or else Ray would start a cluster now
        raise RuntimeError(gone)
    try:
        return ray.get(ref)
    except (failures.RayTaskError, failures.ObjectFetchTimedOutError):
        raise  # another attempt may succeed
    except failures.ObjectLostError as error:
        raise RuntimeError(
            f"Block {number} of {NAME} was lost with a node, and Ray cannot make it again "
            f"({type(error).__name__}). It can do so where a Dataset is read from files, as by "
            "ray.data.read_parquet, and the process that read it still runs."
        ) from error
    except ValueError as error:  # a cluster that does not know the reference
        raise RuntimeError(gone) from error


def _as_declared(block: Any, field: Any, number: int) -> Any:
    """Return a column of a block with the type that it has in the schema, without any loss."""
    import pyarrow as pa

    where = f"block {number} of {NAME}"
    if field.name not in _names(block):
        raise ValueError(
            f"There is no column {field.name!r} in {where}, but in others. Give all blocks the "
            "same columns."
        )
    column = _column(block, field.name)
    if column.type == field.type:
        return column
    try:
        if pa.types.is_float64(column.type) and pa.types.is_floating(field.type):
            raise pa.ArrowInvalid("digits would be lost")  # which Arrow's own check lets pass
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(
            f"Column {field.name!r} is {column.type} in {where} and {field.type} in others, which "
            f"it does not fit: {str(error).rstrip('.')}. Give it one type in all blocks, for "
            "example with Dataset.map_batches."
        ) from error


def _names(block: Any) -> list[str]:
    import pyarrow as pa

    return list(block.column_names if isinstance(block, pa.Table) else block.columns)


def _column(block: Any, name: str) -> Any:
    """Return a column of a block, Arrow's or pandas', as Arrow's."""
    import pyarrow as pa

    if isinstance(block, pa.Table):
        return block.column(name)
    try:
        return pa.array(block[name], from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ValueError(
            f"Column {name!r} of {NAME} holds objects that are neither numbers nor labels "
            f"({str(error).rstrip('.')}). Encode it as numbers first, or leave it out with "
            "open_data(..., columns=[...])."
        ) from error
