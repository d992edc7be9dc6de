//! JSON pointers (RFC 6901) into a text.
//!
//! A pointer is resolved without reading the whole document into values: each step parses one
//! object or array into slices of the input ([`RawValue`]). The result knows its position, which
//! errors name and [`Layout`](crate::layout::Layout) writes back to. In
//! `{"body": {"model": "m", "messages": [...]}}` the pointer `/body/messages` takes two steps, and
//! the siblings of the last one (`model`) are the other fields of the request.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::ChatError;
use crate::layout::{Entries, offset};
use crate::shape::evidence;

/// A value in a text.
#[derive(Clone)]
pub(crate) struct Found<'a> {
    pub(crate) raw: &'a RawValue,
    /// Its path, such as `body.messages`.
    pub(crate) path: String,
    /// Its JSON pointer, such as `/body/messages`.
    pub(crate) pointer: String,
    /// The other fields of the object that contains it; empty for an element of an array. If this
    /// is the list of messages, they are the request's model, tools and parameters.
    pub(crate) siblings: Vec<(String, &'a RawValue)>,
}

impl<'a> Found<'a> {
    /// Returns the whole text.
    pub(crate) fn whole(raw: &'a RawValue) -> Self {
        Self {
            raw,
            path: String::new(),
            pointer: String::new(),
            siblings: Vec::new(),
        }
    }

    /// Returns the last key of its path; empty for an element of an array and for the whole text.
    pub(crate) fn key(&self) -> &str {
        self.path.rsplit(['.', ']']).next().unwrap_or_default()
    }

    /// Returns the fields of an object; none of another value.
    pub(crate) fn entries(&self) -> Entries<'a> {
        serde_json::from_str(self.raw.get()).unwrap_or(Entries(Vec::new()))
    }

    /// Returns the elements of an array; none of another value.
    fn elements(&self) -> Vec<&'a RawValue> {
        serde_json::from_str(self.raw.get()).unwrap_or_default()
    }

    /// Returns the JSON pointer of a field.
    pub(crate) fn pointer_of(&self, key: &str) -> String {
        // RFC 6901, section 3: `~` first, or the `~` of `~1` would be escaped again.
        let key = key.replace('~', "~0").replace('/', "~1");
        format!("{}/{key}", self.pointer)
    }

    /// Returns a field, which must be there once.
    pub(crate) fn field(&self, text: &str, key: &str) -> Result<Self, ChatError> {
        let dot = if self.path.is_empty() { "" } else { "." };
        let path = format!("{}{dot}{key}", self.path);
        let Entries(entries) = self.entries();
        let (mut values, siblings): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|(name, _)| name == key);
        match (values.pop(), values.is_empty()) {
            (Some((_, raw)), true) => Ok(Self {
                raw,
                path,
                pointer: self.pointer_of(key),
                siblings,
            }),
            (Some((_, raw)), false) => {
                let place = offset(text, raw);
                Err(ChatError::new(text, place, "duplicate key; remove one").at(path))
            }
            (None, _) => {
                let names = siblings.iter().map(|(name, _)| format!("`{name}`"));
                let names: Vec<String> = names.collect();
                let names = match (names.is_empty(), self.raw.get().starts_with('{')) {
                    (false, _) => format!("the object has {}", names.join(", ")),
                    (true, true) => "the object is empty".to_owned(),
                    (true, false) => "this is not an object".to_owned(),
                };
                Err(self.nowhere(text, key, &names))
            }
        }
    }

    /// Returns an element of an array.
    fn element(&self, text: &str, token: &str) -> Result<Self, ChatError> {
        let list = self.elements();
        // RFC 6901, section 4, allows no leading zeros, and no sign: a number that is written back
        // differently is not an index.
        let index = token.parse::<usize>().ok();
        let index = index.filter(|index| index.to_string() == token);
        match index.and_then(|index| list.get(index)) {
            Some(raw) => Ok(Self {
                raw,
                path: format!("{}[{token}]", self.path),
                pointer: self.pointer_of(token),
                siblings: Vec::new(),
            }),
            None => {
                let plural = if list.len() == 1 { "" } else { "s" };
                let has = format!("the array has {} element{plural}", list.len());
                Err(self.nowhere(text, token, &has))
            }
        }
    }

    fn nowhere(&self, text: &str, token: &str, has: &str) -> ChatError {
        let message = format!("nothing at the pointer `{}`: {has}", self.pointer_of(token));
        ChatError::new(text, offset(text, self.raw), message).at(&*self.path)
    }

    /// Returns the pointers of the lists of messages in a value, at most five levels deep. Of an
    /// array, the first element counts.
    ///
    /// They are the suggestions of an error. Known wrappers nest one or two levels; five finds
    /// them in an envelope of the caller, and bounds the work on a document that is no chat at all.
    pub(crate) fn lists(&self) -> Vec<String> {
        fn add(found: &Found<'_>, depth: usize, pointers: &mut Vec<String>) {
            // Lists inside of messages are content, not chats.
            if is_list_of_messages(found.raw) {
                pointers.push(found.pointer.clone());
                return;
            }
            let Entries(mut entries) = found.entries();
            if entries.is_empty() {
                entries.extend(found.elements().first().map(|raw| ("0".to_owned(), *raw)));
            }
            for (key, raw) in entries.into_iter().filter(|_| depth > 0) {
                let inner = Found {
                    pointer: found.pointer_of(&key),
                    ..Found::whole(raw)
                };
                add(&inner, depth - 1, pointers);
            }
        }
        let mut pointers = Vec::new();
        add(self, 5, &mut pointers);
        pointers
    }
}

/// Returns whether the first element of an array is a message.
fn is_list_of_messages(raw: &RawValue) -> bool {
    let list: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    let first = list.first().map(|first| serde_json::from_str(first.get()));
    let Some(Ok(first @ Value::Object(_))) = first else {
        return false;
    };
    match evidence(&first) {
        Some((shape, _)) => shape.is_chat(),
        None => first.get("role").is_some_and(Value::is_string),
    }
}

/// Returns the value at a JSON pointer.
pub(crate) fn resolve<'a>(
    text: &str,
    found: Found<'a>,
    pointer: &str,
) -> Result<Found<'a>, ChatError> {
    if pointer.is_empty() {
        return Ok(found);
    }
    let Some(tokens) = pointer.strip_prefix('/') else {
        let message = format!("invalid JSON pointer `{pointer}`: it must start with `/`");
        return Err(ChatError::new(text, 0, message));
    };
    tokens.split('/').try_fold(found, |found, token| {
        // `~1` first (RFC 6901, section 4): `~01` is the key `~1`, not `/`.
        let token = token.replace("~1", "/").replace("~0", "~");
        if found.raw.get().starts_with('[') {
            found.element(text, &token)
        } else {
            found.field(text, &token)
        }
    })
}
