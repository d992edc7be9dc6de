//! Model names: their encoding and the size of their window.

use std::fmt;

use crate::Encoding;

/// The published properties of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Model {
    /// The name; dated and suffixed names (`gpt-4o-2024-08-06`) are found by it.
    pub name: &'static str,
    /// The size of its context window in tokens: the input and the answer.
    pub window: i64,
    /// The most tokens of the input, if the provider states fewer than the window. Its source is
    /// [`INPUT_LIMITS_SOURCE`].
    pub input_limit: Option<i64>,
    /// Its encoding. `None` if the encoding is not public, so that counts are estimates; they are also if its
    /// vocabulary is [missing](Encoding::available).
    pub encoding: Option<Encoding>,
    /// The documentation that states the window.
    pub source: &'static str,
}

/// The month in which [`MODELS`] was last compared with the documentation of the providers.
pub const MODELS_AS_OF: &str = "2026-11";

/// The documentation of the input limits: it states the input and the answer beside each window of OpenAI's
/// models.
pub const INPUT_LIMITS_SOURCE: &str =
    "learn.microsoft.com/azure/foundry/foundry-models/concepts/models-sold-directly-by-azure";

impl Model {
    /// A request with more input than this is refused, though it is below the window.
    const fn with_input_limit(mut self, tokens: i64) -> Self {
        self.input_limit = Some(tokens);
        self
    }
}

/// Defines the constructor of a provider's rows.
macro_rules! providers {
    ($($provider:ident: $encoding:expr, $source:literal;)*) => {$(
        const fn $provider(name: &'static str, window: i64) -> Model {
            Model { name, window, input_limit: None, encoding: $encoding, source: $source }
        }
    )*};
}

providers! {
    openai: Some(Encoding::O200k), "developers.openai.com/api/docs/models";
    openai_cl100k: Some(Encoding::Cl100k), "developers.openai.com/api/docs/models";
    openai_unpublished: None, "developers.openai.com/api/docs/models";
    anthropic: None, "platform.claude.com/docs/en/about-claude/models";
    google: None, "ai.google.dev/gemini-api/docs/models";
    meta: Some(Encoding::Llama3), "llama.com/docs/model-cards-and-prompt-formats";
    // Llama 4 has a vocabulary of its own.
    meta_4: None, "llama.com/docs/model-cards-and-prompt-formats";
    qwen: Some(Encoding::Qwen2), "alibabacloud.com/help/en/model-studio/models";
    // Qwen 3.5 and later have a larger vocabulary.
    qwen_unpublished: None, "alibabacloud.com/help/en/model-studio/models";
    deepseek: Some(Encoding::DeepSeekV3), "api-docs.deepseek.com/quick_start/pricing";
    mistral: Some(Encoding::MistralV3), "docs.mistral.ai/models";
    // Before the Tekken tokenizer.
    mistral_2024: None, "docs.mistral.ai/models";
    moonshot: Some(Encoding::KimiK2), "platform.moonshot.ai/docs";
    xai: None, "docs.x.ai/docs/models";
    cohere: None, "docs.cohere.com/docs/models";
    amazon: None, "docs.aws.amazon.com/nova/latest/userguide";
}

/// The known models, as of [`MODELS_AS_OF`], with the default size of their context window, not a larger one on
/// request. For any other model name an encoding and give the budget in tokens.
pub const MODELS: &[Model] = &[
    openai_unpublished("gpt-6", 1_050_000).with_input_limit(922_000),
    openai_unpublished("gpt-6.1", 1_050_000).with_input_limit(922_000),
    openai("gpt-5.6", 1_050_000).with_input_limit(922_000),
    openai("gpt-5.6-cyber", 400_000),
    openai("gpt-5.5", 1_050_000).with_input_limit(922_000),
    openai("gpt-5.4", 1_050_000).with_input_limit(922_000),
    openai("gpt-5.4-mini", 400_000).with_input_limit(272_000),
    openai("gpt-5.4-nano", 400_000).with_input_limit(272_000),
    openai("gpt-5.2", 400_000).with_input_limit(272_000),
    openai("gpt-5.2-chat", 128_000).with_input_limit(111_616),
    openai("gpt-5.1", 400_000).with_input_limit(272_000),
    openai("gpt-5.1-chat", 128_000).with_input_limit(111_616),
    openai("gpt-5", 400_000).with_input_limit(272_000),
    openai("gpt-5-chat", 128_000).with_input_limit(111_616),
    openai("gpt-4.5", 128_000),
    openai("gpt-4.1", 1_047_576),
    openai("gpt-4o", 128_000),
    openai("chatgpt-4o", 128_000),
    openai_cl100k("gpt-4-turbo", 128_000),
    openai_cl100k("gpt-4-32k", 32_768),
    openai_cl100k("gpt-4", 8_192),
    openai_cl100k("gpt-3.5-turbo", 16_385),
    openai("gpt-oss", 131_072),
    openai("o1", 200_000),
    openai("o1-mini", 128_000),
    openai("o1-preview", 128_000),
    openai("o3", 200_000),
    openai("o4-mini", 200_000),
    anthropic("claude-fable-5", 1_000_000),
    anthropic("claude-fable-5.1", 1_000_000),
    anthropic("claude-mythos-5", 1_000_000),
    anthropic("claude-mythos-5.1", 1_000_000),
    anthropic("claude-opus-5.5", 1_000_000),
    anthropic("claude-opus-5", 1_000_000),
    anthropic("claude-opus-4.8", 1_000_000),
    anthropic("claude-opus-4.7", 1_000_000),
    anthropic("claude-opus-4.6", 1_000_000),
    anthropic("claude-opus-4.5", 200_000),
    anthropic("claude-opus-4.1", 200_000),
    anthropic("claude-opus-4.0", 200_000),
    anthropic("claude-opus-4", 200_000),
    anthropic("claude-sonnet-5.5", 1_000_000),
    anthropic("claude-sonnet-5", 1_000_000),
    anthropic("claude-sonnet-4.6", 1_000_000),
    anthropic("claude-sonnet-4.5", 200_000),
    anthropic("claude-sonnet-4.0", 200_000),
    anthropic("claude-sonnet-4", 200_000),
    anthropic("claude-haiku-5.5", 1_000_000),
    anthropic("claude-haiku-4.5", 200_000),
    anthropic("claude-3.7", 200_000),
    anthropic("claude-3.5", 200_000),
    anthropic("claude-3", 200_000),
    google("gemini-3.8-flash", 1_048_576),
    google("gemini-3.7-flash", 1_048_576),
    google("gemini-3.6-flash", 1_048_576),
    google("gemini-3.5-flash", 1_048_576),
    google("gemini-3.1-pro", 1_048_576),
    google("gemini-3.1-flash", 1_048_576),
    google("gemini-3-pro", 1_048_576),
    google("gemini-3-pro-image", 65_536),
    google("gemini-3-flash", 1_048_576),
    google("gemini-2.5-pro", 1_048_576),
    google("gemini-2.5-flash", 1_048_576),
    google("gemini-2.0-flash", 1_048_576),
    google("gemini-1.5-pro", 2_097_152),
    google("gemini-1.5-flash", 1_048_576),
    meta_4("llama-4-scout", 10_000_000),
    meta_4("llama-4-maverick", 1_000_000),
    meta("llama-3.3", 131_072),
    meta("llama-3.2", 131_072),
    meta("llama-3.1", 131_072),
    meta("llama-3", 8_192),
    meta("llama3.3", 131_072),
    meta("llama3.2", 131_072),
    meta("llama3.1", 131_072),
    meta("llama3", 8_192),
    qwen_unpublished("qwen3.8", 1_000_000),
    qwen_unpublished("qwen3.7", 1_000_000),
    qwen_unpublished("qwen3.5", 1_000_000),
    qwen("qwen3-max", 262_144),
    qwen("qwen3-coder", 262_144),
    qwen("qwen3-next", 262_144),
    qwen("qwen3", 131_072),
    qwen("qwen2.5", 131_072),
    deepseek("deepseek-v4", 1_000_000),
    deepseek("deepseek-v3.2", 163_840),
    deepseek("deepseek-v3", 131_072),
    deepseek("deepseek-r1", 131_072),
    deepseek("deepseek-chat", 131_072),
    deepseek("deepseek-reasoner", 131_072),
    mistral("mistral-large-3", 262_144),
    mistral("mistral-large", 262_144),
    mistral("mistral-medium", 262_144),
    mistral("mistral-small", 262_144),
    mistral("mistral-nemo", 131_072),
    mistral_2024("mistral-large-2411", 131_072),
    mistral_2024("mistral-large-2407", 131_072),
    mistral_2024("mistral-small-2409", 32_768),
    mistral_2024("codestral", 131_072),
    moonshot("kimi-k2.7", 262_144),
    moonshot("kimi-k2.6", 262_144),
    moonshot("kimi-k2.5", 262_144),
    moonshot("kimi-k2", 262_144),
    moonshot("kimi-k2-0711", 131_072),
    xai("grok-4.7", 500_000),
    xai("grok-4.6", 500_000),
    xai("grok-4.5", 500_000),
    xai("grok-4.3", 1_000_000),
    xai("grok-4", 256_000),
    xai("grok-3", 131_072),
    cohere("command-a-plus", 128_000),
    cohere("command-a", 256_000),
    cohere("command-r7b", 128_000),
    cohere("command-r-plus", 128_000),
    cohere("command-r", 128_000),
    amazon("nova-2", 1_000_000),
    amazon("nova-premier", 1_000_000),
    amazon("nova-pro", 300_000),
    amazon("nova-lite", 300_000),
    amazon("nova-micro", 128_000),
];

/// The error of [`Model::find`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownModel {
    name: String,
    nearest: Option<&'static str>,
}

impl fmt::Display for UnknownModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown model {:?}", self.name)?;
        if let Some(nearest) = self.nearest {
            write!(f, " (did you mean {nearest:?}?)")?;
        }
        f.write_str("; give its encoding, and the budget in tokens")
    }
}

impl std::error::Error for UnknownModel {}

impl Model {
    /// Finds a model by name. Ignores a provider before `/` or `.`, `ft:`, and a date or variant after `-`,
    /// `:` or `@`. A `-` stands for the `.` of a version. The longest known name wins. A version that is
    /// not in the table is unknown, not the one before it.
    ///
    /// # Errors
    ///
    /// [`UnknownModel`] with the nearest known name.
    ///
    /// ```
    /// use cupel_chat::{Encoding, Model};
    ///
    /// let model = Model::find("openai/gpt-4o-mini-2024-07-18")?;
    /// assert_eq!((model.window, model.encoding), (128_000, Some(Encoding::O200k)));
    /// assert!(Model::find("gtp-4o").unwrap_err().to_string().contains("did you mean \"gpt-4o\"?"));
    /// # Ok::<(), cupel_chat::UnknownModel>(())
    /// ```
    pub fn find(name: &str) -> Result<&'static Self, UnknownModel> {
        let plain = name
            .strip_prefix("ft:")
            .unwrap_or(name)
            .to_ascii_lowercase();
        let starts = plain.char_indices().filter(|(_, c)| ['/', '.'].contains(c));
        let starts = starts.map(|(at, _)| at + 1).chain([0]);
        let names = starts.map(|start| &plain[start..]);
        let known = |model: &&Self| names.clone().any(|name| model.is_named(name));
        let longest = MODELS
            .iter()
            .filter(known)
            .max_by_key(|model| model.name.len());
        longest.ok_or_else(|| {
            let known = MODELS.iter().map(|model| model.name);
            UnknownModel {
                name: name.to_owned(),
                nearest: cupel::config::nearest_name(
                    plain.rsplit('/').next().unwrap_or(&plain),
                    known,
                ),
            }
        })
    }

    /// Returns whether a name is that of the model, or of a dated or named variant.
    fn is_named(&self, name: &str) -> bool {
        let Some((head, rest)) = name.split_at_checked(self.name.len()) else {
            return false;
        };
        let mut pairs = self.name.bytes().zip(head.bytes());
        let is_version = || {
            let digits = rest[1..].split(['-', ':', '@']).next().unwrap_or_default();
            rest.starts_with('-') && digits.len() == 1 && digits.as_bytes()[0].is_ascii_digit()
        };
        pairs.all(|(own, other)| own == other || (own, other) == (b'.', b'-'))
            && (rest.is_empty() || rest.starts_with(['-', ':', '@']) && !is_version())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_limit_leaves_the_window_to_the_longest_answer() {
        for (name, input, output) in [
            ("gpt-5-mini", 272_000, 128_000),
            ("gpt-5.1-codex", 272_000, 128_000),
            ("gpt-5.2-chat-latest", 111_616, 16_384),
            ("gpt-6", 922_000, 128_000),
        ] {
            let model = Model::find(name).unwrap();
            assert_eq!(model.input_limit, Some(input), "{name}");
            assert_eq!(model.window, input + output, "{name}");
        }
        assert_eq!(Model::find("gpt-4o").unwrap().input_limit, None);
        let is_below = |model: &Model| model.input_limit.is_none_or(|it| it < model.window);
        assert!(MODELS.iter().all(is_below));
    }
}
