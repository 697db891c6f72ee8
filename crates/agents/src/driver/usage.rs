//! How many tokens a program says that its model took in and gave out.

use handover_protocol::Tokens;
use serde_json::Value;

/// The sum of the counts in these members of an object; those that are not there count nothing. `None` if
/// none is there.
pub(super) fn sum(usage: &Value, members: &[&str]) -> Option<u64> {
    let counts = members.iter().filter_map(|name| usage.get(name)?.as_u64());
    counts.reduce(u64::saturating_add)
}

/// Adds what one request or turn took to the total.
pub(super) fn add(total: &mut Tokens, more: Tokens) {
    total.input = total.input.saturating_add(more.input);
    total.output = total.output.saturating_add(more.output);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_there_counts_nothing() {
        let usage =
            json!({"input": 10, "cacheRead": 5, "cost": {"input": 1}, "odd": "7", "less": -1});
        assert_eq!(sum(&usage, &["input", "cacheRead", "cacheWrite"]), Some(15));
        assert_eq!(sum(&usage, &["cacheWrite", "odd", "less", "cost"]), None);
        assert_eq!(sum(&json!(null), &["input"]), None);
        let mut total = Tokens {
            input: u64::MAX,
            output: 1,
        };
        add(
            &mut total,
            Tokens {
                input: 1,
                output: 1,
            },
        );
        assert_eq!(
            total,
            Tokens {
                input: u64::MAX,
                output: 2
            }
        );
    }
}
