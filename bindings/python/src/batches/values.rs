//! Reads values of Arrow arrays in place, whatever their type.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, TimeUnit};
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::collections::HashMap;

/// Returns the value at a position, `None` for null, or why the value is invalid.
pub(super) type Values<'a, T> = Box<dyn Fn(usize) -> Result<Option<T>, String> + Send + Sync + 'a>;

/// The elements of a list in its child array.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) len: usize,
}

/// Returns the values of a nullable array.
fn nullable<'a, T: 'a>(
    array: &'a dyn Array,
    value: impl Fn(usize) -> Result<T, String> + Send + Sync + 'a,
) -> Values<'a, T> {
    match array.nulls() {
        None => Box::new(move |row| value(row).map(Some)),
        Some(nulls) => Box::new(move |row| {
            let value = nulls.is_valid(row).then(|| value(row));
            value.transpose()
        }),
    }
}

/// Returns nulls only: the values of an array of type null, or of an absent column.
pub(super) fn absent<'a, T>() -> Values<'a, T> {
    Box::new(|_| Ok(None))
}

/// Returns the values of the dictionary of an encoded array, by row.
fn decoded<'a, T: 'a>(
    array: &'a dyn Array,
    read: impl Fn(&'a dyn Array) -> Option<Values<'a, T>>,
) -> Option<Values<'a, T>> {
    let dictionary = array.as_any_dictionary();
    let values = read(dictionary.values().as_ref())?;
    if dictionary.values().is_empty() {
        return Some(absent());
    }
    let keys = dictionary.normalized_keys();
    let nulls = dictionary.keys().nulls();
    Some(Box::new(move |row| match nulls {
        Some(nulls) if nulls.is_null(row) => Ok(None),
        _ => values(keys[row]),
    }))
}

/// Reads strings of any encoding; `None` for another type.
pub(super) fn strings(array: &dyn Array) -> Option<Values<'_, &str>> {
    Some(match array.data_type() {
        DataType::Utf8 => {
            let values = array.as_string::<i32>();
            nullable(array, |row| Ok(values.value(row)))
        }
        DataType::LargeUtf8 => {
            let values = array.as_string::<i64>();
            nullable(array, |row| Ok(values.value(row)))
        }
        DataType::Utf8View => {
            let values = array.as_string_view();
            nullable(array, |row| Ok(values.value(row)))
        }
        DataType::Dictionary(..) => return decoded(array, strings),
        DataType::Null => absent(),
        _ => return None,
    })
}

/// Reads binary values.
pub(super) fn bytes(array: &dyn Array) -> Option<Values<'_, &[u8]>> {
    Some(match array.data_type() {
        DataType::Binary => {
            let values = array.as_binary::<i32>();
            nullable(array, |row| Ok(values.value(row)))
        }
        DataType::LargeBinary => {
            let values = array.as_binary::<i64>();
            nullable(array, |row| Ok(values.value(row)))
        }
        DataType::BinaryView => {
            let values = array.as_binary_view();
            nullable(array, |row| Ok(values.value(row)))
        }
        DataType::Dictionary(..) => return decoded(array, bytes),
        _ => return None,
    })
}

/// Reads values by which rows are ordered: integers, dates and timestamps, also without a time zone.
pub(super) fn orders(array: &dyn Array) -> Option<Values<'_, i64>> {
    macro_rules! raw {
        ($type:ty) => {{
            let values = array.as_primitive::<$type>();
            nullable(array, |row| Ok(i64::from(values.value(row))))
        }};
    }
    Some(match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => raw!(TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => raw!(TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => raw!(TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => raw!(TimestampNanosecondType),
        DataType::Date32 => raw!(Date32Type),
        DataType::Date64 => raw!(Date64Type),
        _ => return integers(array),
    })
}

/// Appends a value as JSON. Returns false, and appends nothing, for null.
pub(super) type Writer<'a> =
    Box<dyn Fn(usize, &mut String) -> Result<bool, String> + Send + Sync + 'a>;

/// Writes structs and lists as JSON. A null field of a struct is left out: all structs of a column have the same fields.
pub(super) fn json(array: &dyn Array) -> Option<Writer<'_>> {
    match array.data_type() {
        DataType::Struct(_) => structs(array),
        other if is_list(other) => elements(array),
        _ => None,
    }
}

/// Writes any value as JSON. Dates and decimals are strings.
fn value(array: &dyn Array) -> Option<Writer<'_>> {
    /// Writes the values of a reader.
    fn writer<'a, T: Serialize + 'a>(values: Values<'a, T>) -> Writer<'a> {
        Box::new(move |row, text| {
            let Some(value) = values(row)? else {
                return Ok(false);
            };
            text.push_str(&serde_json::to_string(&value).map_err(|error| error.to_string())?);
            Ok(true)
        })
    }
    match array.data_type() {
        DataType::Null => Some(Box::new(|_, _| Ok(false))),
        DataType::Boolean => booleans(array).map(writer),
        // As JSON has them: a float of a whole number stays one.
        DataType::Float32 | DataType::Float64 => numbers(array).map(writer),
        DataType::Struct(_) => structs(array),
        DataType::Map(..) => entries(array),
        other if is_list(other) => elements(array),
        other if other.is_integer() => integers(array).map(writer),
        _ => strings(array).map(writer).or_else(|| {
            Some(Box::new(move |row, text| {
                if array.is_null(row) {
                    return Ok(false);
                }
                let value = array_value_to_string(array, row).map_err(|it| it.to_string())?;
                text.push_str(&serde_json::Value::from(value).to_string());
                Ok(true)
            }))
        }),
    }
}

fn structs(array: &dyn Array) -> Option<Writer<'_>> {
    let columns = array.as_struct();
    let fields = columns.fields().iter().zip(columns.columns());
    let fields: Option<Vec<(String, Writer<'_>)>> = fields
        .map(|(field, column)| {
            let key = serde_json::Value::from(field.name().as_str());
            Some((format!("{key}:"), value(column.as_ref())?))
        })
        .collect();
    let fields = fields?;
    Some(Box::new(move |row, text| {
        if array.is_null(row) {
            return Ok(false);
        }
        text.push('{');
        for (key, write) in &fields {
            let before = text.len();
            text.push_str(key);
            if write(row, text)? {
                text.push(',');
            } else {
                text.truncate(before);
            }
        }
        close(text, '}');
        Ok(true)
    }))
}

fn elements(array: &dyn Array) -> Option<Writer<'_>> {
    let (child, spans) = lists(array)?;
    let write = value(child)?;
    Some(Box::new(move |row, text| {
        if array.is_null(row) {
            return Ok(false);
        }
        text.push('[');
        let Span { start, len } = spans[row];
        for at in start..start + len {
            if !write(at, text)? {
                text.push_str("null");
            }
            text.push(',');
        }
        close(text, ']');
        Ok(true)
    }))
}

fn entries(array: &dyn Array) -> Option<Writer<'_>> {
    let map = array.as_map();
    let keys = strings(map.keys().as_ref())?;
    let write = value(map.values().as_ref())?;
    let spans = spans(map.value_offsets());
    Some(Box::new(move |row, text| {
        if array.is_null(row) {
            return Ok(false);
        }
        text.push('{');
        let Span { start, len } = spans[row];
        for at in start..start + len {
            let key = serde_json::Value::from(keys(at)?.unwrap_or_default());
            text.push_str(&key.to_string());
            text.push(':');
            if !write(at, text)? {
                text.push_str("null");
            }
            text.push(',');
        }
        close(text, '}');
        Ok(true)
    }))
}

/// Ends a list or an object, without the comma after its last value.
fn close(text: &mut String, end: char) {
    if text.ends_with(',') {
        text.pop();
    }
    text.push(end);
}

/// Reads integers of any width, and floats and decimals that are integers: pandas writes integers with gaps as
/// floats, and a sum in SQL is a decimal.
pub(super) fn integers(array: &dyn Array) -> Option<Values<'_, i64>> {
    macro_rules! integers {
        ($type:ty) => {{
            let values = array.as_primitive::<$type>();
            nullable(array, |row| Ok(i64::from(values.value(row))))
        }};
    }
    macro_rules! whole {
        ($type:ty) => {{
            let values = array.as_primitive::<$type>();
            nullable(array, |row| whole(f64::from(values.value(row))))
        }};
    }
    Some(match array.data_type() {
        DataType::Int8 => integers!(Int8Type),
        DataType::Int16 => integers!(Int16Type),
        DataType::Int32 => integers!(Int32Type),
        DataType::Int64 => integers!(Int64Type),
        DataType::UInt8 => integers!(UInt8Type),
        DataType::UInt16 => integers!(UInt16Type),
        DataType::UInt32 => integers!(UInt32Type),
        DataType::UInt64 => {
            let values = array.as_primitive::<UInt64Type>();
            nullable(array, |row| {
                let value = values.value(row);
                i64::try_from(value).map_err(|_| format!("{value} exceeds the 64-bit range"))
            })
        }
        DataType::Float32 => whole!(Float32Type),
        DataType::Float64 => whole!(Float64Type),
        DataType::Decimal128(_, scale) => {
            let values = array.as_primitive::<Decimal128Type>();
            let unit = 10_i128.checked_pow(u32::try_from(*scale).ok()?)?;
            nullable(array, move |row| {
                let value = values.value(row);
                let whole = i64::try_from(value / unit)
                    .ok()
                    .filter(|_| value % unit == 0);
                whole.ok_or_else(|| {
                    let value = values.value_as_string(row);
                    format!("expected an integer of 64 bits, got {value}")
                })
            })
        }
        DataType::Dictionary(..) => return decoded(array, integers),
        DataType::Null => absent(),
        _ => return None,
    })
}

/// Converts a float that is an integer of up to 53 bits.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn whole(value: f64) -> Result<i64, String> {
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= LIMIT {
        Ok(value as i64)
    } else {
        Err(format!("expected an integer, got {value}"))
    }
}

/// Reads numbers.
pub(super) fn numbers(array: &dyn Array) -> Option<Values<'_, f64>> {
    Some(match array.data_type() {
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>();
            nullable(array, |row| Ok(f64::from(values.value(row))))
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            nullable(array, |row| Ok(values.value(row)))
        }
        DataType::Dictionary(..) => return decoded(array, numbers),
        _ => {
            let values = integers(array)?;
            Box::new(move |row| Ok(values(row)?.map(|value| value as f64)))
        }
    })
}

/// Reads booleans.
pub(super) fn booleans(array: &dyn Array) -> Option<Values<'_, bool>> {
    Some(match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean();
            nullable(array, |row| Ok(values.value(row)))
        }
        DataType::Null => absent(),
        _ => return None,
    })
}

/// Reads timestamps with a time zone, of any unit, and strings in the form of RFC 3339.
pub(super) fn timestamps(array: &dyn Array) -> Option<Values<'_, DateTime<Utc>>> {
    let out_of_range = |value: i64| format!("{value} is out of range");
    macro_rules! timestamps {
        ($type:ty, $convert:expr) => {{
            let values = array.as_primitive::<$type>();
            nullable(array, move |row| {
                let value = values.value(row);
                $convert(value).ok_or_else(|| out_of_range(value))
            })
        }};
    }
    Some(match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, Some(_)) => {
            timestamps!(TimestampSecondType, |value| DateTime::from_timestamp(
                value, 0
            ))
        }
        DataType::Timestamp(TimeUnit::Millisecond, Some(_)) => {
            timestamps!(TimestampMillisecondType, DateTime::from_timestamp_millis)
        }
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => {
            timestamps!(TimestampMicrosecondType, DateTime::from_timestamp_micros)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, Some(_)) => {
            timestamps!(TimestampNanosecondType, |value| Some(
                DateTime::from_timestamp_nanos(value)
            ))
        }
        DataType::Null => absent(),
        _ => {
            let texts = strings(array)?;
            Box::new(move |row| texts(row)?.map(rfc3339).transpose())
        }
    })
}

/// Parses a time of RFC 3339.
fn rfc3339(text: &str) -> Result<DateTime<Utc>, String> {
    let time = DateTime::parse_from_rfc3339(text);
    time.map(|time| time.with_timezone(&Utc)).map_err(|_| {
        format!("expected a time with a zone such as 2026-03-02T09:00:00Z, got {text:?}")
    })
}

/// Reads lists of strings. Null elements are left out.
pub(super) fn string_lists(array: &dyn Array) -> Option<Values<'_, Vec<String>>> {
    if array.data_type() == &DataType::Null {
        return Some(absent());
    }
    let (child, spans) = lists(array)?;
    let texts = strings(child)?;
    Some(Box::new(move |row| {
        let Span { start, len } = spans[row];
        let mut list = Vec::with_capacity(len);
        for at in start..start + len {
            list.extend(texts(at)?.map(str::to_owned));
        }
        Ok(Some(list))
    }))
}

/// Reads maps with string keys, or structs: their fields are the keys. Null values are left out; numbers
/// and booleans become text as in JSON.
pub(super) fn string_maps(array: &dyn Array) -> Option<Values<'_, HashMap<String, String>>> {
    match array.data_type() {
        DataType::Null => Some(absent()),
        DataType::Map(..) => {
            let map = array.as_map();
            let keys = strings(map.keys().as_ref())?;
            let values = texts(map.values().as_ref())?;
            let spans = spans(map.value_offsets());
            Some(nullable(array, move |row| {
                let mut entries = HashMap::new();
                let Span { start, len } = spans[row];
                for at in start..start + len {
                    if let (Some(key), Some(value)) = (keys(at)?, values(at)?) {
                        entries.insert(key.to_owned(), value);
                    }
                }
                Ok(entries)
            }))
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter().zip(fields);
            let columns: Option<Vec<_>> = columns
                .map(|(column, field)| Some((field.name(), texts(column.as_ref())?)))
                .collect();
            let columns = columns?;
            Some(nullable(array, move |row| {
                let mut entries = HashMap::new();
                for (key, values) in &columns {
                    if let Some(value) = values(row)? {
                        entries.insert((*key).clone(), value);
                    }
                }
                Ok(entries)
            }))
        }
        _ => None,
    }
}

/// Reads strings, numbers and booleans as text, as JSON writes them.
fn texts(array: &dyn Array) -> Option<Values<'_, String>> {
    fn text<'a, T: ToString + 'a>(values: Values<'a, T>) -> Values<'a, String> {
        Box::new(move |row| Ok(values(row)?.map(|value| value.to_string())))
    }
    match array.data_type() {
        DataType::Boolean => booleans(array).map(text),
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>();
            Some(nullable(array, |row| {
                Ok(format!("{:?}", values.value(row)))
            }))
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            Some(nullable(array, |row| {
                Ok(format!("{:?}", values.value(row)))
            }))
        }
        _ => strings(array)
            .map(text)
            .or_else(|| integers(array).map(text)),
    }
}

/// Returns the child array of a list array, and where the elements of every list are. A null list is
/// empty.
pub(super) fn lists(array: &dyn Array) -> Option<(&dyn Array, Vec<Span>)> {
    let (child, mut spans): (&ArrayRef, Vec<Span>) = match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            (list.values(), spans(list.value_offsets()))
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            (list.values(), spans(list.value_offsets()))
        }
        DataType::ListView(_) => {
            let list = array.as_list_view::<i32>();
            (list.values(), views(list.offsets(), list.sizes()))
        }
        DataType::LargeListView(_) => {
            let list = array.as_list_view::<i64>();
            (list.values(), views(list.offsets(), list.sizes()))
        }
        DataType::FixedSizeList(_, size) => {
            let list = array.as_fixed_size_list();
            let len = usize::try_from(*size).unwrap_or(0);
            let start = |row| usize::try_from(list.value_offset(row)).unwrap_or(0);
            let spans = (0..list.len()).map(|row| Span {
                start: start(row),
                len,
            });
            (list.values(), spans.collect())
        }
        _ => return None,
    };
    if let Some(nulls) = array.nulls() {
        for (row, span) in spans.iter_mut().enumerate() {
            if nulls.is_null(row) {
                *span = Span::default();
            }
        }
    }
    Some((child.as_ref(), spans))
}

/// Returns whether the type is a list.
pub(super) fn is_list(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::List(_)
            | DataType::LargeList(_)
            | DataType::ListView(_)
            | DataType::LargeListView(_)
            | DataType::FixedSizeList(..)
    )
}

fn spans<O: OffsetSizeTrait>(offsets: &[O]) -> Vec<Span> {
    let pairs = offsets.windows(2);
    let span = |pair: &[O]| Span {
        start: pair[0].as_usize(),
        len: pair[1].as_usize() - pair[0].as_usize(),
    };
    pairs.map(span).collect()
}

fn views<O: OffsetSizeTrait>(offsets: &[O], sizes: &[O]) -> Vec<Span> {
    let pairs = offsets.iter().zip(sizes);
    let span = |(offset, size): (&O, &O)| Span {
        start: offset.as_usize(),
        len: size.as_usize(),
    };
    pairs.map(span).collect()
}
