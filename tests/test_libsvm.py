"""The LIBSVM reader: what it accepts, what it refuses and how it says so."""

import bz2
import gzip
import io
import logging
import lzma
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from buropt.data import load_libsvm, load_libsvm_many

UNTIDY = b"# made by hand\n+1 1:0.5 3:-2 # note 7:9\n\n-1  2:1e-3\t4:4 \r\n+1\n-1 1:.25"
UNTIDY_ROWS = [[0.5, 0, -2, 0], [0, 0.001, 0, 4], [0, 0, 0, 0], [0.25, 0, 0, 0]]


@pytest.fixture
def write(tmp_path):
    def write_bytes(content, name="data"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write_bytes


def refusal(path, **options):
    """The text of the ValueError, with the path cut off its front."""
    with pytest.raises(ValueError, match="^" + re.escape(str(path))) as caught:
        load_libsvm(path, **options)
    return str(caught.value)[len(str(path)) :]


# --- accepted ---


@pytest.mark.parametrize(
    ("name", "compress"),
    [
        ("data", bytes),
        ("data.gz", gzip.compress),
        ("data.bz2", bz2.compress),
        ("data.xz", lzma.compress),
        ("compressed_but_not_named_so", bz2.compress),
    ],
)
def test_legal_but_untidy_text(write, name, compress):
    data = load_libsvm(write(compress(UNTIDY), name))
    np.testing.assert_array_equal(data.A.toarray(), UNTIDY_ROWS)
    np.testing.assert_array_equal(data.y, [1, -1, 1, -1])
    assert (data.n_samples, data.n_features) == (4, 4)
    assert data.name == name.split(".")[0]


def test_result_is_canonical_csr(write):
    data = load_libsvm(write(UNTIDY))
    assert data.A.format == "csr"
    assert data.A.indices.dtype == np.int32
    assert data.A.dtype == data.y.dtype == np.float64
    np.testing.assert_array_equal(data.A.indptr, [0, 2, 4, 4, 5])
    np.testing.assert_array_equal(data.A.indices, [0, 2, 1, 3, 0])
    np.testing.assert_array_equal(data.A @ np.arange(4.0), [-4, 12.001, 0, 0])
    assert data.qid is None


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (b"1 1:+1 2:.25 3:1e-3 4:-0 5:5.", [1, 0.25, 1e-3, -0.0, 5]),
        (b"1 1:1E2 2:1e+2 3:007 4:1.7976931348623157e308", [100, 100, 7, np.finfo(float).max]),
        (b"1 1:5e-324 2:1e-400 3:-0.0000001e-320", [5e-324, 0, 0]),
        (b"1 01:3 2:4", [3, 4]),
        (b"\xef\xbb\xbf1 1:3", [3]),
        (b"1 1:3#comment", [3]),
        (b"  1 1:3\v\f\n", [3]),
        (b"1 1:3\r\n\r\n   \r\n# end", [3]),
    ],
)
def test_spellings(write, text, values):
    data = load_libsvm(write(text), labels="raw")
    np.testing.assert_array_equal(data.A.toarray(), [values])
    assert data.A.nnz == len(values)


def test_a_text_that_ends_between_two_features_is_whole(write):
    data = load_libsvm(write(b"0 1:0.18257 3:0.18257\n1 1:0.18257 2:0.18257 "))
    np.testing.assert_array_equal(data.A.toarray() > 0, [[1, 0, 1], [1, 1, 0]])


def test_float32(write):
    data = load_libsvm(write(b"-1 1:0.1\n1 1:1e-50 2:16777217"), dtype="float32")
    assert data.A.dtype == data.y.dtype == np.float32
    np.testing.assert_array_equal(data.A.toarray(), np.float32([[0.1, 0], [0, 16777216]]))


def test_index_base(write):
    path = write(b"1 0:5 2:7\n-1 1:6")
    data = load_libsvm(path, zero_based=True)
    np.testing.assert_array_equal(data.A.toarray(), [[5, 0, 7], [0, 6, 0]])
    # The base is what the caller says, even where index 0 happens to be absent.
    path = write(b"1 1:5\n-1 2:6")
    assert load_libsvm(path, zero_based=True).n_features == 3
    assert load_libsvm(path).n_features == 2


def test_n_features(write):
    path = write(b"1 2:5\n-1 1:1")
    assert load_libsvm(path, n_features=7).A.shape == (2, 7)
    assert load_libsvm(path, n_features=2).A.shape == (2, 2)
    assert load_libsvm(write(b"1\n-1\n"), n_features=3).A.shape == (2, 3)


def test_largest_index(write):
    assert load_libsvm(write(b"1 2147483647:1")).n_features == 2**31 - 1
    assert "index 2147483648 in" in refusal(write(b"1 2147483648:1"))
    assert load_libsvm(write(b"1 2147483646:1"), zero_based=True).n_features == 2**31 - 1
    assert "the largest index is 2147483646" in refusal(write(b"1 2147483647:1"), zero_based=True)


def test_query_ids_are_integers_of_64_bits(write):
    path = write(b"1 qid:9007199254740993 1:1440")
    data = load_libsvm(path, query_id=True)
    assert data.qid.dtype == np.int64
    assert data.qid.tolist() == [9007199254740993]
    assert data.A.toarray().tolist() == [[1440.0]]
    ignored = load_libsvm(path)
    assert ignored.qid is None
    assert ignored.A.toarray().tolist() == [[1440.0]]


def test_files_that_belong_together(write):
    train = write(b"1 1:1\n2 2:1\n", "train")
    test = write(b"2 qid:1 5:1", "test")
    first, second = load_libsvm_many([train, test])
    assert first.n_features == second.n_features == 5
    assert first.label_mapping == second.label_mapping == {1.0: -1.0, 2.0: 1.0}
    assert first.y.tolist() == [-1, 1]
    assert second.y.tolist() == [1]
    assert (first.name, second.name) == ("train", "test")
    with pytest.raises(ValueError, match="no LIBSVM file was named"):
        load_libsvm_many([])


finite = st.floats(allow_nan=False, allow_infinity=False)
rows = st.lists(
    st.tuples(finite, st.dictionaries(st.integers(1, 40), finite, max_size=6)), min_size=1
)


@given(rows, st.sampled_from(["\n", "\r\n", " \n\n", "\t# 1:2 \n"]), st.booleans())
def test_round_trip(tmp_path_factory, rows, newline, final_newline):
    lines = [
        " ".join([repr(label), *(f"{index}:{row[index]!r}" for index in sorted(row))])
        for label, row in rows
    ]
    path = tmp_path_factory.getbasetemp() / "round_trip"
    path.write_text(newline.join(lines) + newline * final_newline, newline="")
    data = load_libsvm(path, labels="raw", n_features=40)
    expected = np.zeros((len(rows), 40))
    for dense, (_, row) in zip(expected, rows, strict=True):
        for index, value in row.items():
            dense[index - 1] = value
    np.testing.assert_array_equal(data.y, [label for label, _ in rows])
    np.testing.assert_array_equal(data.A.toarray(), expected)
    assert data.A.nnz == sum(len(row) for _, row in rows)


def test_agrees_with_scikit_learn(write):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 30)) * (rng.random((200, 30)) < 0.3)
    y = rng.integers(0, 5, 200)
    buffer = io.BytesIO()
    dump_svmlight_file(A, y, buffer, zero_based=False, query_id=np.arange(200) // 7, comment="made")
    path = write(buffer.getvalue())
    data = load_libsvm(path, query_id=True)
    matrix, labels, qid = load_svmlight_file(str(path), query_id=True, zero_based=False)
    np.testing.assert_array_equal(data.A.toarray(), matrix.toarray())
    np.testing.assert_array_equal(data.y, labels)
    np.testing.assert_array_equal(data.qid, qid)


# --- labels ---


@pytest.mark.parametrize("pair", [(0, 1), (1, 2), (-1, 1), (3, 7.5)])
def test_two_labels_become_signs_and_the_mapping_is_said(write, caplog, pair):
    low, high = pair
    with caplog.at_level(logging.INFO, "buropt.data"):
        data = load_libsvm(write(f"{high} 1:1\n{low} 1:1\n{high} 1:2\n".encode(), "pair"))
    assert data.y.tolist() == [1, -1, 1]
    assert data.label_mapping == {low: -1, high: 1}
    assert caplog.messages == [f"pair: labels {low:g} -> -1, {high:g} -> +1"]


def test_more_labels_stay_as_they_are(write):
    data = load_libsvm(write(b"1 1:1\n5 1:2\n3 1:1\n"))
    assert data.y.tolist() == [1, 5, 3]
    assert data.label_mapping == {}
    assert data.classes.tolist() == [1, 3, 5]


def test_one_class_against_the_rest(write, caplog):
    path = write(b"1 1:1\n5 1:2\n3 1:1\n", "several")
    with caplog.at_level(logging.INFO, "buropt.data"):
        data = load_libsvm(path, positive=3)
    assert data.y.tolist() == [-1, -1, 1]
    assert data.label_mapping == {1: -1, 3: 1, 5: -1}
    assert caplog.messages == ["several: label 3 -> +1, the other 2 -> -1"]
    assert load_libsvm(path).binary(positive=5).y.tolist() == [-1, 1, -1]
    with pytest.raises(ValueError, match=r"several: positive=4 does not .*, here 1, 3, 5"):
        load_libsvm(path, positive=4)
    # Of two labels either may be the positive one: `positive` sees the labels of the file.
    assert load_libsvm(write(b"1 1:1\n2 1:2\n"), positive=1).y.tolist() == [1, -1]


def test_labels_as_told(write):
    path = write(b"0 1:1\n1 1:2\n")
    assert load_libsvm(path, labels="raw").y.tolist() == [0, 1]
    data = load_libsvm(path, labels={"0": 1, 1: -1})
    assert data.y.tolist() == [1, -1]
    assert data.label_mapping == {0: 1, 1: -1}
    with pytest.raises(ValueError, match="labels= says nothing about 1; the labels in the data"):
        load_libsvm(path, labels={0: 1})
    with pytest.raises(ValueError, match="labels='sign' is unknown"):
        load_libsvm(path, labels="sign")


# --- refused ---

AT_LINE_3 = [
    # label
    (b"x 1:1", "label 'x' is not a number; write 'label index:value"),
    (b"1x 1:1", "label '1x' is not a number"),
    (b"+-1 1:1", "label '+-1' is not a number"),
    (b"0x10 1:1", "label '0x10' is not a number"),
    (b"3:1 4:1", "starts with '3:1', not with a label; write the label first, as in '+1 3:1'"),
    (b" 3:1", "starts with '3:1', not with a label"),
    (b"1,2 3:1", "label '1,2' lists several classes; multi-label data are not supported"),
    (b"nan 1:1", "label 'nan' is not a finite number"),
    (b"-inf 1:1", "label '-inf' is not a finite number"),
    (b"1e999 1:1", "label '1e999' is not a finite number"),
    # index
    (b"1 0:5", "index 0 in '0:5', but indices count from 1; pass zero_based=True"),
    (b"1 2:5 0:5", "index 0 in '0:5', but indices count from 1"),
    (b"1 1:5 1:6", "index 1 in '1:6' comes twice"),
    (b"1 2:5 3:1 1:6", "index 1 in '1:6' follows index 3; write the indices of a line in incr"),
    (b"1 4294967297:1", "index 4294967297 in '4294967297:1' is too large"),
    (b"1 99999999999999999999:1", "index 99999999999999999999 in '99999999999999999999:1' is too"),
    (b"1 -3:1", "index '-3' in '-3:1' is not a whole number"),
    (b"1 +3:1", "index '+3' in '+3:1' is not a whole number"),
    (b"1 1.5:1", "index '1.5' in '1.5:1' is not a whole number"),
    (b"1 a:1", "index 'a' in 'a:1' is not a whole number"),
    (b"1 :1", "index '' in ':1' is not a whole number"),
    (b"1 12", "'12' has no colon; write index:value"),
    (b"1 1:2 5 7:1", "'5' has no colon"),
    (b"1 1 :2", "'1' has no colon"),
    (b"1 1:1\r-1 2:1", "'-1' has no colon"),
    # value
    (b"1 12:", "'12:' has no value"),
    (b"1 12: 5", "'12:' has no value; write index:value without blanks"),
    (b"1 12:# 5", "'12:' has no value"),
    (b"1 12:abc", "value 'abc' in '12:abc' is not a number"),
    (b"1 12:1.5abc", "value '1.5abc' in '12:1.5abc' is not a number"),
    (b"1 12:1,5", "value '1,5' in '12:1,5' is not a number"),
    (b"1 12:+-5", "value '+-5' in '12:+-5' is not a number"),
    (b"1 12:1.52:3", "value '1.52:3' in '12:1.52:3' is not a number; is a blank missing"),
    (b"1 12:nan", "value 'nan' in '12:nan' is not finite"),
    (b"1 12:-Infinity", "value '-Infinity' in '12:-Infinity' is not finite"),
    (b"1 12:1e400", "value '1e400' in '12:1e400' is too large for float64"),
    (b"1 12:0.01e400", "value '0.01e400' in '12:0.01e400' is too large for float64"),
    # elsewhere
    (b"1 2:3 qid:4", "'qid:4' must follow the label"),
    (b"\x00\xff 1:1", r"label '\x00\xff' is not a number"),
    (b"y" * 80, "label '" + "y" * 40 + "...' is not a number"),
]


@pytest.mark.parametrize(("line", "message"), AT_LINE_3)
def test_refusals_name_file_line_and_token(write, line, message):
    text = refusal(write(b"# first\n1 1:1 2:2\n" + line + b"\n1 1:1\n"))
    assert text.startswith(", line 3: ")
    assert message in text
    assert "cut off" not in text


def test_line_numbers_count_every_line(write):
    path = write(b"\n# comment\r\n\n1 1:1\n\n \n1 1:x\n")
    assert refusal(path).startswith(", line 7: ")


@pytest.mark.parametrize("tail", [b"1 12:", b"1 12", b"1 12:-", b"1 12:1e", b"-"])
def test_a_text_cut_off_inside_a_token_is_refused(write, tail):
    text = refusal(write(b"1 1:1\n" + tail))
    assert text.startswith(", line 2: ")
    assert text.endswith("(the file ends in this line without a newline: is it cut off?)")


def test_index_beyond_n_features(write):
    path = write(b"1 1:1\n1 3:1\n")
    text = refusal(path, n_features=2)
    assert text == ", line 2: index 3 in '3:1' lies beyond n_features=2; pass n_features=3 or more"
    text = refusal(write(b"1 2:1\n"), n_features=2, zero_based=True)
    assert "index 2 in '2:1' lies beyond n_features=2; pass n_features=3 or more" in text
    text = refusal(write(b"1 3:1 2:1\n"), zero_based=True)
    assert "index 2 in '2:1' follows index 3" in text


def test_value_too_large_for_float32(write):
    path = write(b"1 1:1e39")
    assert 'too large for float32; pass dtype="float64"' in refusal(path, dtype="float32")
    assert load_libsvm(path).A.toarray().tolist() == [[1e39]]


def test_labels_that_float32_cannot_hold(write):
    path = write(b"1 1:1\n-1e39 1:1\n2 1:1\n")
    assert refusal(path, dtype="float32") == (
        ': label -1e+39 is too large for float32; pass dtype="float64"'
    )
    assert load_libsvm(path).y.tolist() == [1, -1e39, 2]
    mapped = load_libsvm(path, dtype="float32", labels={1: 1, "-1e39": -1, 2: 0})
    assert mapped.y.tolist() == [1, -1, 0]
    path = write(b"16777217 1:1\n16777216 1:1\n")
    assert refusal(path, dtype="float32", labels="raw") == (
        ': labels 16777216 and 16777217 are the same number in float32; pass dtype="float64"'
    )
    # Two classes become signs in float64; targets that are not whole numbers are rounded.
    assert load_libsvm(path, dtype="float32").y.tolist() == [1, -1]
    data = load_libsvm(write(b"0.1 1:1\n0.10000000001 1:1\n"), dtype="float32", labels="raw")
    assert data.y.tolist() == [np.float32(0.1)] * 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"1 1:1", "no qid field follows the label"),
        (b"1", "no qid field follows the label"),
        (b"1 qid: 1:1", "'qid:' is not an integer query id"),
        (b"1 qid:1.5 1:1", "'qid:1.5' is not an integer query id"),
        (b"1 qid:9223372036854775808 1:1", "does not fit a 64-bit integer"),
        (b"1 qid:1 qid:2 1:1", "'qid:2' must follow the label"),
    ],
)
def test_query_ids_refused(write, line, message):
    text = refusal(write(b"1 qid:1 1:1\n" + line + b"\n"), query_id=True)
    assert text.startswith(", line 2: ")
    assert message in text


@pytest.mark.parametrize("content", [b"", b"\n\n", b"# nothing\n  \r\n", b"\xef\xbb\xbf"])
def test_a_file_without_samples(write, content):
    assert refusal(write(content)).startswith(" holds no samples")


def test_a_file_without_features(write):
    assert "the number of columns is not known; pass n_features=" in refusal(write(b"1\n-1\n"))


def test_missing_paths(tmp_path):
    for unset in (None, ""):
        with pytest.raises(ValueError, match=r"no LIBSVM file was named; pass path=\.\.\. \(data"):
            load_libsvm(unset)
    with pytest.raises(FileNotFoundError, match=r"there is no file .*absent.*; pass path=\.\.\."):
        load_libsvm(tmp_path / "absent")
    assert refusal(tmp_path).startswith(" is a folder; pass the path of a LIBSVM text file in it")


def test_arguments_out_of_range(write):
    path = write(b"1 1:1")
    with pytest.raises(ValueError, match="dtype='float16' is unknown"):
        load_libsvm(path, dtype="float16")
    for wrong in (3.0, "3", True):
        with pytest.raises(TypeError, match=f"^n_features={wrong!r} is not an int; write an int"):
            load_libsvm(path, n_features=wrong)
    assert load_libsvm(path, n_features=np.int64(3)).n_features == 3
    for name in ("zero_based", "query_id"):
        with pytest.raises(TypeError, match=f"^{name}='no' is not a bool; write True or False"):
            load_libsvm(path, **{name: "no"})
    for n_features in (0, -1, 2**31):
        with pytest.raises(ValueError, match=f"n_features={n_features} is out of range"):
            load_libsvm(path, n_features=n_features)
