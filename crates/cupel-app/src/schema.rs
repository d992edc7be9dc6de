//! The JSON Schema of the answers.

#[cfg(feature = "schema")]
pub use self::types::Answer;
#[cfg(feature = "schema")]
pub(crate) use self::types::ShapeName;

/// Returns the JSON Schema (draft 2020-12) of all answers: `schema/answers.schema.json`.
///
/// Each answer is a definition under its name, such as `#/$defs/FitAnswer`; the root accepts any of them. Objects
/// are closed: the schema describes the answers of this version, and a later one may have more keys.
///
/// ```
/// let schema: serde_json::Value = serde_json::from_str(cupel_app::answers_schema())?;
/// let tokens = &schema["$defs"]["FitAnswer"]["properties"]["tokens_after"];
/// assert_eq!(tokens["description"], "The tokens of the whole request after.");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn answers_schema() -> &'static str {
    include_str!("../schema/answers.schema.json")
}

#[cfg(feature = "schema")]
mod types {
    use std::borrow::Cow;

    use cupel_chat::Shape;
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

    use crate::{
        CompareAnswer, CountAnswer, ErrorAnswer, ExplainAnswer, ExplainOneAnswer, FitAnswer,
        MarginalAnswer, MinBudgetAnswer, ModelAnswer, SearchAnswer, SelectAnswer, SweepAnswer,
    };

    /// Any answer, for the schema alone (feature `schema`).
    ///
    /// `cargo xtask schema` writes its schema, with shorter descriptions, to the file of
    /// [`answers_schema`](crate::answers_schema).
    pub enum Answer {}

    /// Each answer is a definition of its own, so that a caller can name it.
    impl JsonSchema for Answer {
        fn schema_name() -> Cow<'static, str> {
            "Answer".into()
        }

        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            let answers = [
                generator.subschema_for::<FitAnswer>(),
                generator.subschema_for::<SelectAnswer<'static>>(),
                generator.subschema_for::<ExplainAnswer>(),
                generator.subschema_for::<ExplainOneAnswer>(),
                generator.subschema_for::<SearchAnswer>(),
                generator.subschema_for::<SweepAnswer>(),
                generator.subschema_for::<MinBudgetAnswer>(),
                generator.subschema_for::<MarginalAnswer>(),
                generator.subschema_for::<CompareAnswer>(),
                generator.subschema_for::<CountAnswer>(),
                generator.subschema_for::<ModelsAnswer>(),
                generator.subschema_for::<ErrorAnswer>(),
            ];
            json_schema!({
                "description": "Any answer of cupel, and the error in the place of one.",
                "anyOf": answers,
            })
        }
    }

    /// What [`models`](crate::models) returns.
    enum ModelsAnswer {}

    impl JsonSchema for ModelsAnswer {
        fn schema_name() -> Cow<'static, str> {
            "ModelsAnswer".into()
        }

        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            let models = generator.subschema_for::<ModelAnswer>();
            json_schema!({ "description": "The known models.", "type": "array", "items": models })
        }
    }

    /// The name of a [`Shape`].
    pub(crate) enum ShapeName {}

    impl JsonSchema for ShapeName {
        fn schema_name() -> Cow<'static, str> {
            "Shape".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({
                "description": "The format of a chat, or `items`.",
                "type": "string",
                "enum": Shape::ALL.map(Shape::name),
            })
        }
    }
}
