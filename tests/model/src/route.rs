//! What a request is, told from its method and path.

use hyper::Method;
use serde_json::{Value, json};

use crate::api::Api;

/// What a request is for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Route {
    /// Asks the model.
    Model {
        /// In which protocol.
        api: Api,
        /// Whether the answer is to be streamed; `None` where the body says it.
        stream: Option<bool>,
    },
    /// Asks something beside it, with the answer.
    Aside(Value),
    /// Nothing that this server knows.
    Unknown,
}

/// Tells what `method` on `path` is. Only the end of the path counts: the base is the program's choice.
pub(crate) fn route(method: &Method, path: &str) -> Route {
    let model = |api, stream| Route::Model { api, stream };
    if *method == Method::POST {
        return match path {
            _ if path.ends_with("/chat/completions") => model(Api::ChatCompletions, None),
            _ if path.ends_with("/responses") => model(Api::Responses, None),
            _ if path.ends_with("/messages") => model(Api::Messages, None),
            _ if path.ends_with("/messages/count_tokens") => {
                Route::Aside(json!({"input_tokens": 1}))
            }
            _ if path.ends_with(":generateContent") => model(Api::Gemini, Some(false)),
            _ if path.ends_with(":streamGenerateContent") => model(Api::Gemini, Some(true)),
            _ if path.ends_with(":countTokens") => Route::Aside(json!({"totalTokens": 1})),
            _ => Route::Unknown,
        };
    }
    if path.ends_with("/models") {
        // Under the names of both families that ask for it.
        return Route::Aside(json!({"object": "list", "data": [], "models": []}));
    }
    // Some programs look first whether the server is there.
    if path == "/" {
        return Route::Aside(json!({}));
    }
    Route::Unknown
}
