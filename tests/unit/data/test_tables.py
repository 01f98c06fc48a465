"""Data files: read as text, judged by the declared types, each row that breaks the contract by its reason."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import fakes_release as made
import polars as pl
import pytest

from seatrial.adapters import csv_text, tables
from seatrial.data.table import REASON, Table, typed
from seatrial.errors import InvalidInput
from seatrial.spec import Column, Data

DATA = made.spec_of().data
HEADER = "order,at,again,price,visits,shop,member"
LINE = "o1,2026-01-01T10:00:00Z,1,1.5,3,hill,true"
AT = datetime(2026, 1, 1, 10, tzinfo=UTC)


def read(path: Path, data: Data = DATA) -> Table:
    return typed(tables.read_text(path, data), data)


def csv(tmp_path: Path, *lines: str, header: str = HEADER, end: str = "\n") -> Path:
    path = tmp_path / "data.csv"
    path.write_bytes(end.join([header, *lines, ""]).encode())
    return path


def one(tmp_path: Path, **cells: str) -> Table:
    """A CSV with the one row LINE, some cells changed."""
    row = dict(zip(HEADER.split(","), LINE.split(","), strict=True)) | cells
    return read(csv(tmp_path, ",".join(row.values())))


def reasons(table: Table) -> list[str]:
    return table.quarantined[REASON].to_list()


def test_a_row_that_keeps_the_contract_gets_the_declared_types(tmp_path: Path) -> None:
    table = read(csv(tmp_path, LINE))
    assert table.rows.rows() == [("o1", AT, 1, 1.5, 3, "hill", True)]
    assert table.rows.dtypes == [
        pl.String, pl.Datetime("us", "UTC"), pl.Int64, pl.Float32, pl.Int64, pl.String, pl.Boolean
    ]  # fmt: skip
    assert table.quarantined.is_empty()


def test_csv_and_parquet_of_the_same_content_give_the_same_rows(tmp_path: Path) -> None:
    lines = [LINE, "007,2026-01-01T11:30:00.25+01:30,0,,4,NA,false", "o3,2026-01-01T10:00:00Z,1,-2e-3,5,,true"]
    from_csv = read(csv(tmp_path, *lines))
    typed_columns = {
        "order": ["o1", "007", "o3"],
        "at": [AT, AT.replace(microsecond=250_000), AT],
        "again": [1, 0, 1],
        "price": [1.5, None, -2e-3],
        "visits": [3, 4, 5],
        "shop": ["hill", "NA", ""],
        "member": [True, False, True],
    }
    pl.DataFrame(typed_columns).write_parquet(tmp_path / "data.parquet")
    from_parquet = read(tmp_path / "data.parquet")
    assert from_parquet.rows.equals(from_csv.rows)
    assert reasons(from_parquet) == reasons(from_csv) == ["shop has no value, got nothing"]


@pytest.mark.parametrize("name", ["10015745448500295401", "000120", "18446744073709551616", "1e5", "NA", "null", "nan"])
def test_ids_stay_as_they_are_written(tmp_path: Path, name: str) -> None:
    assert one(tmp_path, order=name).rows["order"].to_list() == [name]


@pytest.mark.parametrize("word", ["NA", "null", "None", "nan", "-", " "])
def test_a_word_that_means_nothing_elsewhere_is_a_word(tmp_path: Path, word: str) -> None:
    assert one(tmp_path, shop=word).rows["shop"].to_list() == [word]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"visits": "1.5"}, "visits is no int64, got 1.5"),
        ({"visits": "1.0"}, "visits is no int64, got 1.0"),
        ({"visits": "9223372036854775808"}, "visits is no int64, got 9223372036854775808"),
        ({"visits": "1_000"}, "visits is no int64, got 1_000"),
        ({"visits": "test"}, "visits is no int64, got test"),
        ({"visits": ""}, "visits has no value, got nothing"),
        ({"price": "1e39"}, "price is no float32, got 1e39"),
        ({"price": "nan"}, "price is no float32, got nan"),
        ({"price": "inf"}, "price is no float32, got inf"),
        ({"price": "1 000"}, "price is no float32, got 1 000"),
        ({"price": "'1,5'"}, "price is no float32, got 1,5"),
        ({"member": "yes"}, "member is no bool, got yes"),
        ({"shop": ""}, "shop has no value, got nothing"),
        ({"order": ""}, "order has no value, got nothing"),
        ({"again": "2"}, "again is not 0 or 1, got 2"),
        ({"again": "-1"}, "again is not 0 or 1, got -1"),
        ({"again": "1.0"}, "again is not 0 or 1, got 1.0"),
        ({"again": "true"}, "again is not 0 or 1, got true"),
        ({"again": ""}, "again is not 0 or 1, got nothing"),
        ({"at": ""}, "at has no value, got nothing"),
        ({"at": "2026-01-01T10:00:00"}, "at is no time with an offset, got 2026-01-01T10:00:00"),
        ({"at": "2026-01-01"}, "at is no time with an offset, got 2026-01-01"),
        ({"at": "2026-02-30T10:00:00Z"}, "at is no time with an offset, got 2026-02-30T10:00:00Z"),
        ({"at": "1767261600"}, "at is no time with an offset, got 1767261600"),
        ({"again": "x", "visits": "y"}, "again is not 0 or 1, got x; visits is no int64, got y"),
    ],
)
def test_a_value_that_is_not_of_its_type_puts_its_row_aside_with_the_reason(
    tmp_path: Path, cells: dict[str, str], reason: str
) -> None:
    table = one(tmp_path, **{name: text.replace("'", '"') for name, text in cells.items()})
    assert table.rows.is_empty()
    assert reasons(table) == [reason]


def test_one_bad_cell_costs_one_row_and_not_the_column(tmp_path: Path) -> None:
    lines = [LINE.replace("o1", f"o{i}").replace(",3,", f",{i if i != 5 else 'test'},") for i in range(9)]
    table = read(csv(tmp_path, *lines))
    assert table.rows["visits"].to_list() == [0, 1, 2, 3, 4, 6, 7, 8]
    assert table.quarantined["order"].to_list() == ["o5"]


def test_a_missing_value_of_a_nullable_feature_is_fine(tmp_path: Path) -> None:
    assert one(tmp_path, price="").rows["price"].to_list() == [None]


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01T10:00:00Z",
        "2026-01-01T13:00:00+03:00",
        "2026-01-01T13:00:00+0300",
        "2025-12-31T23:30:00-10:30",
        "2026-01-01 10:00:00+00:00",
        "2026-01-01T10:00:00.000000Z",
    ],
)
def test_times_with_an_offset_become_utc(tmp_path: Path, text: str) -> None:
    assert one(tmp_path, at=text).rows["at"].to_list() == [AT]


def test_naive_times_of_parquet_are_put_aside_and_zones_become_utc(tmp_path: Path) -> None:
    frame = made.rows(1).with_columns(at=pl.lit(AT.replace(tzinfo=None)))
    frame.write_parquet(tmp_path / "naive.parquet")
    assert reasons(read(tmp_path / "naive.parquet")) == ["at is no time with an offset, got 2026-01-01T10:00:00.000000"]
    frame.with_columns(
        pl.col("at").dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Kolkata").dt.cast_time_unit("ns")
    ).write_parquet(tmp_path / "zone.parquet")
    assert read(tmp_path / "zone.parquet").rows["at"].to_list() == [AT]


def test_parquet_numbers_are_held_to_the_declared_type_too(tmp_path: Path) -> None:
    frame = made.rows(3).with_columns(
        visits=pl.Series([1.0, 1.5, None]),
        price=pl.Series([float("nan"), 1e300, 2.0]),
        again=pl.Series([0.0, 1.0, 1.0]),
    )
    frame.write_parquet(tmp_path / "d.parquet")
    assert reasons(read(tmp_path / "d.parquet")) == [
        "again is not 0 or 1, got 0.0; price is no float32, got NaN; visits is no int64, got 1.0",
        "again is not 0 or 1, got 1.0; price is no float32, got 1e+300; visits is no int64, got 1.5",
        "again is not 0 or 1, got 1.0; visits has no value, got nothing",
    ]


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["harbour", "hill", "söder, 'ö'"])])
def test_parquet_words_may_be_categories(tmp_path: Path, dtype: pl.DataType) -> None:
    frame = made.rows(9)
    frame.with_columns(frame["shop"].cast(dtype)).write_parquet(tmp_path / "d.parquet")
    assert read(tmp_path / "d.parquet").rows["shop"].to_list() == frame["shop"].to_list()


@pytest.mark.parametrize(
    "values", [pl.Series([[1]]), pl.Series([{"a": 1}]), pl.Series([b"x"]), pl.Series([1], dtype=pl.Duration("us"))]
)
def test_a_parquet_column_without_plain_values_is_refused(tmp_path: Path, values: pl.Series) -> None:
    made.rows(1).with_columns(shop=values).write_parquet(tmp_path / "d.parquet")
    with pytest.raises(InvalidInput, match="'shop' is of type"):
        read(tmp_path / "d.parquet")


def test_columns_that_the_contract_does_not_name_are_left_out(tmp_path: Path) -> None:
    made.rows(1).with_columns(x=pl.Series([[1]])).write_parquet(tmp_path / "d.parquet")
    assert "x" not in read(tmp_path / "d.parquet").rows.columns
    assert read(csv(tmp_path, f"9,{LINE},9", header=f"x,{HEADER},x")).rows.columns == HEADER.split(",")


def test_rows_come_in_id_order_whatever_the_order_in_the_file(tmp_path: Path) -> None:
    lines = [LINE.replace("o1", name) for name in ("b", "a", "c")]
    assert read(csv(tmp_path, *lines)).rows["order"].to_list() == ["a", "b", "c"]


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    assert read(csv(tmp_path, LINE, header="\ufeff" + HEADER)).rows.height == 1


@pytest.mark.parametrize(
    "header",
    [
        HEADER.replace("shop", "Shop"),
        HEADER.replace("shop", " shop"),
        HEADER.replace("shop", "shop\u200b"),
        HEADER.replace("shop", "sh\u00adop"),
        HEADER.replace("order", "\ufeff\ufefforder"),
        HEADER.replace("shop", "\uff53hop"),
    ],
)
def test_a_column_that_only_looks_like_a_missing_one_is_named(tmp_path: Path, header: str) -> None:
    with pytest.raises(InvalidInput, match=r"lacks the columns .* looks like .* signs that cannot be seen"):
        read(csv(tmp_path, LINE, header=header))


def test_a_missing_column_is_named_and_a_different_one_is_no_hint(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"lacks the columns \['shop'\]") as caught:
        read(csv(tmp_path, LINE, header=HEADER.replace("shop", "sh_op")))
    assert "looks like" not in str(caught.value)


def test_a_wanted_column_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"names the columns \['again'\] more than once"):
        read(csv(tmp_path, f"{LINE},0", header=f"{HEADER},again"))


@pytest.mark.parametrize("separator", csv_text.SEPARATORS)
def test_the_separator_is_the_one_that_finds_the_columns(tmp_path: Path, separator: str) -> None:
    line = LINE.replace("hill", "a b").replace(",", separator)
    assert read(csv(tmp_path, line, header=HEADER.replace(",", separator))).rows["shop"].to_list() == ["a b"]


@pytest.mark.parametrize(
    ("line", "told"), [(LINE + ",x", "line 3 has 8"), (LINE.rpartition(",")[0], "line 3 has 6"), ("x", "line 3 has 1")]
)
def test_a_row_of_another_length_is_named_by_its_line(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=f"^1 rows have another number of fields than the header's 7.*{told}"):
        read(csv(tmp_path, LINE, line))


def test_many_ragged_rows_are_counted_and_the_first_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"^40 rows .* line 6 has 1, …"):
        read(csv(tmp_path, *["x"] * 40))


def test_quotes_may_hold_separators_and_line_ends(tmp_path: Path) -> None:
    assert one(tmp_path, shop='"a, ""b""\r\nc"').rows["shop"].to_list() == ['a, "b"\r\nc']


@pytest.mark.parametrize("line", [LINE.replace("hill", '"hill'), LINE.replace("hill", '"hi"ll')])
def test_a_quote_that_does_not_close_its_field_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(InvalidInput, match="no CSV"):
        read(csv(tmp_path, line))


def test_a_bare_carriage_return_is_named_and_splits_no_row(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="1 lines end in a bare carriage return, the first is line 3"):
        read(csv(tmp_path, LINE, LINE.replace("hill", "hi\rll"), LINE))
    with pytest.raises(InvalidInput, match="2 lines end in a bare carriage return, the first is line 1"):
        read(csv(tmp_path, LINE, end="\r"))


def test_both_kinds_of_line_ends_and_blank_lines_may_be_mixed(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    second = LINE.replace("o1", "o2")
    path.write_bytes(f"{HEADER}\r\n{LINE}\n\n{second}\r\n\r\n".encode())
    assert read(path).rows["member"].to_list() == [True, True]
    path.write_bytes(f"{HEADER}\n{LINE}".encode())
    assert read(path).rows.height == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (HEADER.encode() + b"\n", "columns but no row"),
        (HEADER.encode(), "columns but no row"),
        (b"\n\n\n", "lacks the columns"),
        (b"x" * 200_000, "no CSV"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n", "Git LFS pointer"),
        (f"{HEADER}\n{LINE}\0\n".encode(), "line 2 holds zero bytes"),
        (f"{HEADER}\n{LINE}\n".encode("utf-16"), "UTF-16"),
        (f"{HEADER}\n{LINE}\n".encode("utf-16-le"), "zero bytes"),
        (f"{HEADER}\n{LINE.replace('hill', 'höll')}\n".encode("latin-1"), "nor UTF-8"),
        (f"{HEADER}\n".encode() + f"{LINE}\n".encode() * 5000 + b"\xff\n", "nor UTF-8"),
        (b"PAR1", "starts as Parquet but cannot be read"),
        (b"PAR1" + bytes(range(256)) * 9 + b"PAR1", "starts as Parquet but cannot be read"),
        (b"\x89PNG\r\n\x1a\n\0\0", "nor UTF-8"),
    ],
)
def test_a_file_that_is_no_table_says_what_it_is(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "data").write_bytes(content)
    with pytest.raises(InvalidInput, match=message):
        read(tmp_path / "data")


def test_no_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(InvalidInput, match="cannot be read"):
            read(path)


def test_a_parquet_file_that_is_cut_or_damaged_gives_a_table_or_a_refusal(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    made.rows(200).write_parquet(path)
    whole = path.read_bytes()
    refused = 0
    for place in range(4, len(whole), max(1, len(whole) // 60)):
        for damaged in (whole[:place], whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :]):
            path.write_bytes(damaged)
            try:
                read(path)
            except InvalidInput:
                refused += 1
    assert refused > 60


def test_more_rows_than_one_chunk_are_all_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_text, "CHUNK_ROWS", 7)
    lines = [LINE.replace("o1", f"o{i:02d}") for i in range(21)]
    assert read(csv(tmp_path, *lines)).rows["order"].to_list() == [f"o{i:02d}" for i in range(21)]


def _contract(names: list[str]) -> Data:
    """A contract that the columns of a foreign file could meet, or not."""
    first, second, third, *rest = [*names, *"abcd"[len(names) :]]
    features = tuple(
        Column(name=f"f{i}" if not name.isidentifier() else name, dtype=("string", "float32", "int64", "bool")[i % 4])
        for i, name in enumerate(dict.fromkeys(rest))
        if name not in {first, second, third}
    )
    made_up: Data = DATA.model_copy(update={"id": first, "time": second, "label": third, "features": features})
    return made_up


def test_every_real_file_ends_in_a_table_or_a_refusal(corpus: Path) -> None:
    ended = {"table": 0, "refused": 0}
    for path in sorted([*(corpus / "datasets_dirty").iterdir(), *(corpus / "datasets").iterdir()]):
        head = path.read_bytes()[:4096].decode("utf-8-sig", "replace").splitlines()[:1]
        names = list(pl.read_parquet_schema(path)) if path.suffix == ".parquet" else "".join(head).split(",")
        for data in (DATA, _contract(names)):
            try:
                table = read(path, data)
                assert table.height > 0, path.name
                ended["table"] += 1
            except InvalidInput:
                ended["refused"] += 1
    assert ended["table"] > 10, ended
    assert ended["refused"] > 40, ended
