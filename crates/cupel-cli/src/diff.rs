//! What becomes of each message: `fit --diff`.

use std::collections::BTreeMap;

use cupel::{ContextItem, total_tokens};
use cupel_app::{Content, Fit, Prepared, Run};
use cupel_chat::{Chat, Fitted};

use crate::failure::Failure;
use crate::output::{Output, columns, style};
use crate::text::{Give, Table, excerpt, grouped, left, right};

/// The changes of a chat or a list of items, one row per message or item.
pub(crate) struct Diff {
    heading: &'static str,
    rows: Vec<Row>,
    overhead: i64,
}

struct Row {
    index: Option<usize>,
    label: String,
    /// The tokens before; `None` for a message that is added.
    before: Option<i64>,
    /// The tokens after; `None` for a message that is dropped.
    after: Option<i64>,
    content: String,
}

const GIVES: &[Give] = &[
    Give::Cut("content", 16),
    Give::Cut("role", 9),
    Give::Cut("kind", 9),
    Give::Omit("content"),
];

impl Diff {
    /// Lists the changes of a chat with these candidates.
    pub(crate) fn of_chat(chat: &Chat, candidates: &[ContextItem], fitted: &Fitted<'_>) -> Self {
        let dropped = fitted.dropped.iter().map(|it| (it.index, None));
        let shortened = fitted.shortened.iter();
        let shortened = shortened.map(|it| (it.index, Some((it.original_tokens, it.tokens))));
        let changed: BTreeMap<usize, _> = dropped.chain(shortened).collect();
        let mut markers = fitted.markers.iter().peekable();
        let mut rows = Vec::with_capacity(chat.len() + fitted.markers.len());
        for message in chat.messages() {
            let index = message.index();
            if let Some(marker) = markers.next_if(|marker| marker.before == index) {
                rows.push(Row {
                    index: None,
                    label: marker.role.to_owned(),
                    before: None,
                    after: Some(marker.tokens),
                    content: marker.text.clone(),
                });
            }
            let tokens = candidates[index].tokens();
            let (before, after) = match changed.get(&index) {
                None => (tokens, Some(tokens)),
                Some(None) => (tokens, None),
                Some(Some((before, after))) => (*before, Some(*after)),
            };
            rows.push(Row {
                index: Some(index),
                label: message.label().to_owned(),
                before: Some(before),
                after,
                content: message.text(),
            });
        }
        Self {
            heading: "role",
            rows,
            overhead: total_tokens(&candidates[chat.len()..]),
        }
    }

    /// Lists the changes of a window.
    pub(crate) fn of_fit(prepared: &Prepared, fit: &Fit<'_>) -> Self {
        match (&prepared.content, &fit.fitted) {
            (Content::Chat { chat, .. }, Some(fitted)) => {
                Self::of_chat(chat, prepared.items(), fitted)
            }
            _ => Self::of_items(prepared, &fit.run),
        }
    }

    /// Lists the changes of items.
    fn of_items(task: &Prepared, run: &Run<'_>) -> Self {
        let decisions = &run.decisions;
        let rows = task.items().iter().enumerate().map(|(index, item)| Row {
            index: Some(index),
            label: item.kind().to_string(),
            before: Some(item.tokens()),
            after: decisions
                .position(index)
                .map(|_| decisions.item(index).tokens()),
            content: item.content().to_owned(),
        });
        Self {
            heading: "kind",
            rows: rows.collect(),
            overhead: 0,
        }
    }

    /// Writes the changes to standard output: `-` dropped, `~` shortened, `+` added.
    pub(crate) fn show(&self, output: &mut Output) -> Result<(), Failure> {
        let columns = columns();
        let mut table = Table::new(
            [
                left(""),
                right("#"),
                left(self.heading),
                right("before"),
                right("after"),
                left("content"),
            ],
            GIVES,
        );
        let tokens = |tokens: Option<i64>| tokens.map_or_else(|| "-".to_owned(), grouped);
        for row in &self.rows {
            table.row(vec![
                row.mark().to_owned(),
                row.index.map(|index| index.to_string()).unwrap_or_default(),
                row.label.clone(),
                tokens(row.before),
                tokens(row.after),
                excerpt(&row.content, columns),
            ]);
        }
        if self.overhead > 0 {
            let overhead = grouped(self.overhead);
            table.row(vec![
                String::new(),
                String::new(),
                "overhead".to_owned(),
                overhead.clone(),
                overhead,
                "tools and parameters of the request".to_owned(),
            ]);
        }
        let mut lines = table.lines(columns).into_iter();
        let bold = style::HEADER;
        output.show(format_args!(
            "{bold}{}{bold:#}",
            lines.next().unwrap_or_default()
        ))?;
        for line in lines {
            let style = match line.chars().next() {
                Some('-') => style::OUT,
                Some('+') => style::IN,
                Some('~') => style::SHORTENED,
                _ => anstyle::Style::new(),
            };
            output.show(format_args!("{style}{line}{style:#}"))?;
        }
        Ok(())
    }
}

impl Row {
    fn mark(&self) -> &'static str {
        match (self.before, self.after) {
            (None, _) => "+",
            (_, None) => "-",
            (before, after) if before != after => "~",
            _ => "",
        }
    }
}
