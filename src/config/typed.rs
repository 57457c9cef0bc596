//! From a value as it was written to the type that a key asks for.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use serde_json::Value as Json;

use super::fault::Wrong;
use super::layer::Value;

/// A text as it was written.
pub(super) fn text(value: &Value) -> Result<&str, Wrong> {
    let (Value::Text(text) | Value::Untyped(text)) = value else {
        return Err(wrong_type(value, "a text", "put it into quotes"));
    };
    Ok(text)
}

/// A text that is not blank, without the blanks at both ends.
pub(super) fn filled(text: &str) -> Result<String, Wrong> {
    match text.trim() {
        "" => Err(Wrong::new("is empty", "write it, or leave the key out")),
        text => Ok(text.to_owned()),
    }
}

/// A text that `T` can parse.
pub(super) fn parsed<T: FromStr<Err: Display>>(value: &Value, example: &str) -> Result<T, Wrong> {
    let text = text(value)?;
    text.parse().map_err(|error| {
        Wrong::new(
            format!("{text:?} does not do: {error}"),
            format!("write it as {example:?}"),
        )
    })
}

/// A span of time within bounds.
pub(super) fn duration(
    value: &Value,
    bounds: &RangeInclusive<Duration>,
) -> Result<Duration, Wrong> {
    let remedy = "write a number with its unit, as \"45s\", \"500ms\" or \"1h 30m\"";
    let (Value::Text(text) | Value::Untyped(text)) = value else {
        return Err(wrong_type(value, "a duration", remedy));
    };
    let span = humantime::parse_duration(text)
        .map_err(|_| Wrong::new(format!("{text:?} is no duration"), remedy))?;
    within(span, bounds, show_duration)
}

/// A span of time as a configuration writes it.
pub(super) fn show_duration(span: &Duration) -> String {
    humantime::format_duration(*span).to_string()
}

/// An integer within bounds.
pub(super) fn number<T>(value: &Value, bounds: &RangeInclusive<T>) -> Result<T, Wrong>
where
    T: TryFrom<i64> + PartialOrd + Display,
{
    let remedy = "write a whole number without quotes";
    let number = if let Value::Integer(number) = value {
        *number
    } else if let Value::Untyped(text) = value {
        let plain = text.replace('_', "");
        let number = plain.parse();
        number.map_err(|_| Wrong::new(format!("{text:?} is no integer"), remedy))?
    } else {
        return Err(wrong_type(value, "an integer", remedy));
    };
    let inside = T::try_from(number).ok();
    inside
        .filter(|number| bounds.contains(number))
        .ok_or_else(|| outside(&number, bounds, ToString::to_string, ToString::to_string))
}

/// A number with a fraction, within bounds.
pub(super) fn decimal(value: &Value, bounds: &RangeInclusive<f64>) -> Result<f64, Wrong> {
    let remedy = "write a number without quotes, as 0.5";
    let text = match value {
        Value::Float(number) => number.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Untyped(text) => text.clone(),
        Value::Text(_) | Value::Flag(_) | Value::List(_) | Value::Foreign(_) => {
            return Err(wrong_type(value, "a number", remedy));
        }
    };
    let number = text
        .parse()
        .map_err(|_| Wrong::new(format!("{text:?} is no number"), remedy))?;
    within(number, bounds, f64::to_string)
}

/// `true` or `false`.
pub(super) fn flag(value: &Value) -> Result<bool, Wrong> {
    if let Value::Flag(flag) = value {
        return Ok(*flag);
    }
    if let Value::Untyped(text) = value
        && let Ok(flag) = text.parse()
    {
        return Ok(flag);
    }
    Err(wrong_type(value, "true or false", "write true or false"))
}

/// The items of a list; from the environment, divided by commas.
pub(super) fn list<T>(
    value: &Value,
    read: impl Fn(&Value) -> Result<T, Wrong>,
) -> Result<Vec<T>, Wrong> {
    if let Value::List(items) = value {
        return items.iter().map(read).collect();
    }
    if let Value::Untyped(text) = value {
        if text.trim_start().starts_with('[') {
            return Err(Wrong::new(
                "is a list as a file has it",
                "divide the items by commas alone here, as DE,AT, without brackets and quotes",
            ));
        }
        return items(text)
            .map(|item| read(&Value::Untyped(item.to_owned())))
            .collect();
    }
    let remedy = "write a list, as [\"…\", \"…\"]";
    Err(wrong_type(value, "a list", remedy))
}

fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
}

fn within<T: PartialOrd>(
    value: T,
    bounds: &RangeInclusive<T>,
    show: impl Fn(&T) -> String,
) -> Result<T, Wrong> {
    if bounds.contains(&value) {
        return Ok(value);
    }
    Err(outside(&value, bounds, &show, &show))
}

/// How the remedy of a value out of its bounds begins.
pub(super) const CHOOSE: &str = "choose between";

fn outside<V, T>(
    value: &V,
    bounds: &RangeInclusive<T>,
    show: impl Fn(&V) -> String,
    show_bound: impl Fn(&T) -> String,
) -> Wrong {
    let (low, high) = (show_bound(bounds.start()), show_bound(bounds.end()));
    Wrong::new(
        format!("is {}, not within its bounds", show(value)),
        format!("{CHOOSE} {low} and {high}"),
    )
}

fn wrong_type(value: &Value, wanted: &str, remedy: &str) -> Wrong {
    Wrong::new(format!("is {}, not {wanted}", value.kind()), remedy)
}

/// How a value is shown: untyped text as the type that its key has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A text.
    Text,
    /// A number or a flag.
    Scalar,
    /// A list.
    List,
    /// Nothing of it.
    Secret,
}

/// The value as JSON; for what a configuration holds, that is also TOML.
pub(super) fn shown(value: &Value, shape: Shape) -> Json {
    if shape == Shape::Secret {
        return Json::from("[redacted]");
    }
    match value {
        Value::Untyped(text) => match shape {
            Shape::Scalar => {
                let plain = text.replace('_', "");
                serde_json::from_str(&plain).unwrap_or_else(|_| Json::from(plain))
            }
            Shape::List => items(text).map(Json::from).collect(),
            Shape::Text | Shape::Secret => Json::from(text.clone()),
        },
        Value::Text(text) => Json::from(text.clone()),
        Value::Integer(number) => Json::from(*number),
        Value::Float(number) => Json::from(*number),
        Value::Flag(flag) => Json::from(*flag),
        Value::List(items) => items.iter().map(|item| shown(item, shape)).collect(),
        Value::Foreign(kind) => Json::from(*kind),
    }
}
