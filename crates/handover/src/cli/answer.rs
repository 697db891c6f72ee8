//! `handover answer REQUEST TEXT`.

use handover_protocol::{AnswerParams, AnswerResult, Hidden, Method, RequestId};

use super::context::{Context, block_on};
use super::failure::Failure;
use super::session::Session;

/// Arguments of `handover answer`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The request, such as r1; `handover list` shows those there are
    request: RequestId,
    /// The answer. It is stored: never a password or code
    text: String,
}

/// Runs `handover answer`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let params = AnswerParams {
        request_id: args.request,
        text: Hidden::new(args.text),
    };
    block_on(async {
        let session = Session::open(context).await?;
        let result: AnswerResult = session.call(Method::Answer, &params).await?;
        context.print(&result, |result| {
            format!("request {} is answered\n", result.request_id)
        })
    })
}
