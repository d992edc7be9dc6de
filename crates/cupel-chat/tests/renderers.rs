//! Random sessions in the formats of `validators/`.

use cupel_chat::Shape;
use serde_json::{Value, json};

use crate::generated::{Step, tool};

/// Renders a session in a format with a file in `validators/`. Roles alternate where the provider asks
/// for it.
pub(crate) fn render(shape: Shape, steps: &[Step]) -> Option<Vec<Value>> {
    let mut messages = Messages {
        shape,
        is_ui: steps.len().is_multiple_of(2),
        list: Vec::new(),
        is_model: Vec::new(),
    };
    match shape {
        Shape::Gemini | Shape::Bedrock => {}
        Shape::ShareGpt => messages
            .list
            .push(json!({"from": "system", "value": "Be helpful."})),
        Shape::Cohere | Shape::Ollama | Shape::Vercel => {
            let system = messages.message("system", "Be helpful.");
            messages.list.push(system);
        }
        _ => return None,
    }
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::User(text) => messages.say("user", text),
            Step::Say(text) => messages.say("assistant", text),
            Step::Tools {
                calls,
                think,
                reversed,
                with_text,
                reused,
                ..
            } => messages.tools(&Tools {
                number,
                calls,
                think: *think,
                order: if *reversed {
                    (0..calls.len()).rev().collect()
                } else {
                    (0..calls.len()).collect()
                },
                with_text: *with_text,
                reused: *reused,
            }),
        }
    }
    Some(messages.list)
}

/// Returns the request of a session.
pub(crate) fn document(shape: Shape, messages: &[Value]) -> Option<Value> {
    Some(match shape {
        Shape::Gemini => {
            json!({"systemInstruction": {"parts": [{"text": "Be helpful."}]}, "contents": messages})
        }
        Shape::Bedrock => {
            json!({"modelId": "m", "system": [{"text": "Be helpful."}], "messages": messages})
        }
        Shape::ShareGpt => json!({"id": "x", "conversations": messages}),
        _ => return None,
    })
}

/// Returns whether the provider asks for alternating roles.
pub(crate) fn alternates(shape: Shape) -> bool {
    matches!(shape, Shape::Gemini | Shape::Bedrock | Shape::ShareGpt)
}

struct Messages {
    shape: Shape,
    /// Whether messages of the AI SDK are UI messages.
    is_ui: bool,
    list: Vec<Value>,
    /// Whether the model wrote each message after the system message.
    is_model: Vec<bool>,
}

/// A step with tool calls.
struct Tools<'s> {
    number: usize,
    calls: &'s [(String, String)],
    think: bool,
    /// The order of the results.
    order: Vec<usize>,
    with_text: bool,
    reused: bool,
}

impl Tools<'_> {
    fn id(&self, index: usize) -> String {
        if self.reused {
            format!("reused-{index}")
        } else {
            format!("call-{}-{index}", self.number)
        }
    }

    /// Returns a result as a JSON object, and a number that no shortening may lose.
    fn result(&self, index: usize) -> Value {
        json!({"output": self.calls[index].1, "n": index})
    }
}

impl Messages {
    /// Adds a message; where roles alternate, after one of the other role.
    fn push(&mut self, is_model: bool, message: Value) {
        if alternates(self.shape) && self.is_model.last().copied().unwrap_or(true) == is_model {
            let filler = if is_model {
                self.message("user", "Go on.")
            } else {
                self.message("assistant", "Done.")
            };
            self.list.push(filler);
            self.is_model.push(!is_model);
        }
        self.list.push(message);
        self.is_model.push(is_model);
    }

    fn say(&mut self, role: &str, text: &str) {
        let message = self.message(role, text);
        self.push(role == "assistant", message);
    }

    fn message(&self, role: &str, text: &str) -> Value {
        match self.shape {
            Shape::Gemini => {
                let role = role.replace("assistant", "model");
                json!({"role": role, "parts": [{"text": text}]})
            }
            Shape::Bedrock => json!({"role": role, "content": [{"text": text}]}),
            Shape::ShareGpt => {
                let from = if role == "user" { "human" } else { "gpt" };
                json!({"from": from, "value": text})
            }
            Shape::Vercel if self.is_ui => {
                let id = format!("m{}", self.list.len());
                json!({"id": id, "role": role, "parts": [{"type": "text", "text": text}]})
            }
            _ => json!({"role": role, "content": text}),
        }
    }

    fn tools(&mut self, tools: &Tools<'_>) {
        let indices = 0..tools.calls.len();
        let arguments = |index: usize| tools.calls[index].0.as_str();
        match self.shape {
            Shape::Gemini => self.gemini_tools(tools),
            Shape::Bedrock => self.bedrock_tools(tools),
            Shape::ShareGpt => {
                for index in indices {
                    let call = json!({"name": tool(arguments(index)), "arguments": {"a": arguments(index)}});
                    self.push(
                        true,
                        json!({"from": "function_call", "value": call.to_string()}),
                    );
                    let result = &tools.calls[index].1;
                    self.push(false, json!({"from": "observation", "value": result}));
                }
            }
            Shape::Vercel if self.is_ui => {
                let mut parts: Vec<Value> = indices
                    .map(|index| {
                        json!({"type": "tool-f", "toolCallId": tools.id(index), "state": "output-available",
                            "input": {"a": arguments(index)}, "output": tools.result(index)})
                    })
                    .collect();
                parts.insert(0, json!({"type": "step-start"}));
                if tools.think {
                    parts.insert(1, json!({"type": "reasoning", "text": "hm"}));
                }
                let id = format!("m{}", self.list.len());
                self.push(true, json!({"id": id, "role": "assistant", "parts": parts}));
            }
            Shape::Vercel => {
                let calls: Vec<Value> = indices
                    .map(|index| json!({"type": "tool-call", "toolCallId": tools.id(index), "toolName": tool(arguments(index)), "input": {"a": arguments(index)}}))
                    .collect();
                self.push(true, json!({"role": "assistant", "content": calls}));
                for &index in &tools.order {
                    let output = match index % 2 {
                        0 => json!({"type": "text", "value": tools.calls[index].1}),
                        _ => json!({"type": "json", "value": tools.result(index)}),
                    };
                    let part = json!({"type": "tool-result", "toolCallId": tools.id(index), "toolName": tool(arguments(index)), "output": output});
                    self.push(false, json!({"role": "tool", "content": [part]}));
                }
            }
            Shape::Ollama => {
                let calls: Vec<Value> = indices
                    .clone()
                    .map(|index| json!({"function": {"name": format!("f{index}"), "arguments": {"a": arguments(index)}}}))
                    .collect();
                self.push(
                    true,
                    json!({"role": "assistant", "content": "", "tool_calls": calls}),
                );
                for index in indices {
                    let name = format!("f{index}");
                    let result = &tools.calls[index].1;
                    self.push(
                        false,
                        json!({"role": "tool", "tool_name": name, "content": result}),
                    );
                }
            }
            _ => {
                let calls: Vec<Value> = indices
                    .map(|index| json!({"id": tools.id(index), "type": "function", "function": {"name": tool(arguments(index)), "arguments": arguments(index)}}))
                    .collect();
                self.push(
                    true,
                    json!({"role": "assistant", "tool_plan": "hm", "tool_calls": calls}),
                );
                for &index in &tools.order {
                    let content =
                        json!([{"type": "document", "document": {"data": tools.result(index)}}]);
                    self.push(false, json!({"role": "tool", "tool_call_id": tools.id(index), "content": content}));
                }
            }
        }
    }

    fn gemini_tools(&mut self, tools: &Tools<'_>) {
        let indices = 0..tools.calls.len();
        let arguments = |index: usize| tools.calls[index].0.as_str();
        let with_id = |mut value: Value, index: usize| {
            if !tools.reused {
                value["id"] = tools.id(index).into();
            }
            value
        };
        let mut calls: Vec<Value> = indices
            .map(|index| {
                let call = json!({"name": tool(arguments(index)), "args": {"a": arguments(index)}});
                json!({"functionCall": with_id(call, index)})
            })
            .collect();
        if tools.think {
            calls[0]["thoughtSignature"] = "c2lnbmF0dXJl".into();
            calls.insert(0, json!({"text": "hm", "thought": true}));
        }
        self.push(true, json!({"role": "model", "parts": calls}));
        let results = tools.order.iter().map(|&index| {
            let response = json!({"name": tool(arguments(index)), "response": tools.result(index)});
            json!({"functionResponse": with_id(response, index)})
        });
        let mut results: Vec<Value> = results.collect();
        if tools.with_text {
            results.push(json!({"text": "and hurry"}));
        }
        self.push(false, json!({"role": "user", "parts": results}));
    }

    fn bedrock_tools(&mut self, tools: &Tools<'_>) {
        let indices = 0..tools.calls.len();
        let arguments = |index: usize| tools.calls[index].0.as_str();
        let mut calls: Vec<Value> = indices
            .map(|index| json!({"toolUse": {"toolUseId": tools.id(index), "name": tool(arguments(index)), "input": {"a": arguments(index)}}}))
            .collect();
        if tools.think {
            let text = json!({"text": "hm", "signature": "s"});
            calls.insert(0, json!({"reasoningContent": {"reasoningText": text}}));
        }
        self.push(true, json!({"role": "assistant", "content": calls}));
        let results = tools.order.iter().map(|&index| {
            let content = match index % 2 {
                0 => json!([{"text": tools.calls[index].1}]),
                _ => json!([{"json": tools.result(index)}]),
            };
            json!({"toolResult": {"toolUseId": tools.id(index), "content": content}})
        });
        let mut results: Vec<Value> = results.collect();
        if tools.with_text {
            results.push(json!({"text": "and hurry"}));
        }
        self.push(false, json!({"role": "user", "content": results}));
    }
}
