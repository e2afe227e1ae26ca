//! The usage of a turn, from the different places where programs report it.
//!
//! Tokens come with the result of the prompt: `usage`, or `_meta.quota` in Gemini. Cost comes in `usage_update`, summed over
//! the session, so it is the turn's own only in a new session. Vibe also sums tokens over the session, but reports the sum
//! when it loads one.

use super::quirk::Quirk;
use crate::lenient_json::Object;
use crate::update::TurnUsage;

#[derive(Debug, Default)]
pub(super) struct UsageMeter {
    /// The usage of the session before this turn. `None`: zero, or unknown.
    before: Option<TurnUsage>,
    cost: Option<f64>,
    /// Input and output tokens of the last result of this process.
    last: Option<(u64, u64)>,
}

/// Where the session comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionOrigin {
    New,
    Resumed,
}

impl UsageMeter {
    /// A `usage_update` before the prompt was sent.
    pub(super) fn start_at(&mut self, update: &Object) {
        let meta = update.object("_meta");
        let tokens = (meta.integer("promptTokens"), meta.integer("completionTokens"));
        if let (Some(input_tokens), Some(output_tokens)) = tokens {
            self.before = Some(TurnUsage { input_tokens, output_tokens, cost: dollars(update) });
        }
    }

    /// A `usage_update` of this turn.
    pub(super) fn note(&mut self, update: &Object) {
        self.cost = dollars(update).or(self.cost);
    }

    /// Another turn of the session begins in this process. Cost is always summed over the session.
    pub(super) fn begin_next_turn(&mut self) {
        let (input_tokens, output_tokens) = self.last.unwrap_or_default();
        self.before = Some(TurnUsage { input_tokens, output_tokens, cost: self.cost });
    }

    pub(super) fn total(&mut self, origin: SessionOrigin, quirk: Quirk, result: &Object) -> Option<TurnUsage> {
        let cost = match (origin, &self.before) {
            (SessionOrigin::New, _) => self.cost,
            (SessionOrigin::Resumed, Some(TurnUsage { cost: Some(before), .. })) => self.cost.map(|cost| cost - before),
            (SessionOrigin::Resumed, _) => None,
        };
        let tokens = tokens(result);
        if tokens.is_none() && cost.is_none() {
            return None;
        }
        self.last = tokens.filter(|_| quirk == Quirk::CountsForSession).or(self.last);
        let (input_tokens, output_tokens) = tokens.unwrap_or_default();
        let before = self.before.clone().filter(|_| origin == SessionOrigin::Resumed).unwrap_or_default();
        Some(TurnUsage {
            input_tokens: input_tokens.saturating_sub(before.input_tokens),
            output_tokens: output_tokens.saturating_sub(before.output_tokens),
            cost,
        })
    }
}

/// Input and output. Input tokens include cached ones; some programs count those separately, which their total shows.
fn tokens(result: &Object) -> Option<(u64, u64)> {
    let usage = result.object("usage");
    if let (Some(input), Some(output)) = (usage.integer("inputTokens"), usage.integer("outputTokens")) {
        let cached = ["cachedReadTokens", "cachedWriteTokens"]
            .into_iter()
            .filter_map(|name| usage.integer(name))
            .fold(0, u64::saturating_add);
        let total = usage.integer("totalTokens").unwrap_or_default();
        let with_cached = input.saturating_add(cached);
        let is_counted_apart = with_cached.saturating_add(output) <= total;
        return Some((if is_counted_apart { with_cached } else { input }, output));
    }
    let count = result.at("_meta/quota/token_count");
    Some((count.integer("input_tokens")?, count.integer("output_tokens")?))
}

fn dollars(update: &Object) -> Option<f64> {
    let cost = update.object("cost");
    let is_dollars = matches!(cost.non_empty_text("currency").as_deref(), None | Some("USD"));
    cost.number("amount").filter(|_| is_dollars)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tokens_as_programs_count_them() {
        for (result, expected) in [
            (
                json!({"usage": {"inputTokens": 1000, "outputTokens": 7, "cachedReadTokens": 200, "totalTokens": 1207}}),
                Some((1200, 7)),
            ),
            (
                json!({"usage": {"inputTokens": 1200, "outputTokens": 7, "cachedReadTokens": 200, "totalTokens": 1207}}),
                Some((1200, 7)),
            ),
            (json!({"usage": {"inputTokens": 1200, "outputTokens": 7}}), Some((1200, 7))),
            (json!({"_meta": {"quota": {"token_count": {"input_tokens": 5, "output_tokens": 6}}}}), Some((5, 6))),
            (json!({"usage": null, "_meta": {"quota": {"token_count": null}}}), None),
            (
                json!({"usage": {"inputTokens": u64::MAX, "outputTokens": u64::MAX, "cachedReadTokens": u64::MAX}}),
                Some((u64::MAX, u64::MAX)),
            ),
        ] {
            assert_eq!(tokens(&Object::of(&result)), expected, "{result}");
        }
    }

    #[test]
    fn money_is_told_when_it_is_the_turns_own() {
        let update = |amount: f64| Object::of(&json!({"cost": {"amount": amount, "currency": "USD"}}));
        let mut meter = UsageMeter::default();
        meter.note(&update(0.5));
        meter.note(&Object::of(&json!({"used": 7})));
        let cost = |spent: Option<TurnUsage>| spent.and_then(|spent| spent.cost);
        assert_eq!(cost(meter.total(SessionOrigin::New, Quirk::None, &Object::default())), Some(0.5));
        assert_eq!(meter.total(SessionOrigin::Resumed, Quirk::None, &Object::default()), None);
        let stood_at = json!({"cost": {"amount": 0.125}, "_meta": {"promptTokens": 10, "completionTokens": 3}});
        meter.start_at(&Object::of(&stood_at));
        let result = Object::of(&json!({"usage": {"inputTokens": 15, "outputTokens": 4}}));
        let expected = TurnUsage { input_tokens: 5, output_tokens: 1, cost: Some(0.375) };
        assert_eq!(meter.total(SessionOrigin::Resumed, Quirk::None, &result), Some(expected));
    }

    #[test]
    fn a_later_turn_of_one_process_has_used_its_own_part() {
        let cost = |amount: f64| Object::of(&json!({"cost": {"amount": amount}}));
        let result =
            |input: u64, output: u64| Object::of(&json!({"usage": {"inputTokens": input, "outputTokens": output}}));
        for (quirk, second, expected) in
            [(Quirk::None, result(1200, 6), (1200, 6)), (Quirk::CountsForSession, result(2400, 21), (1200, 6))]
        {
            let mut meter = UsageMeter::default();
            meter.note(&cost(0.5));
            meter.total(SessionOrigin::New, quirk, &result(1200, 15));
            meter.begin_next_turn();
            meter.note(&cost(0.75));
            let spent = meter.total(SessionOrigin::Resumed, quirk, &second).unwrap();
            assert_eq!(((spent.input_tokens, spent.output_tokens), spent.cost), (expected, Some(0.25)), "{quirk:?}");
        }
    }

    #[test]
    fn other_money_is_not_dollars() {
        assert_eq!(dollars(&Object::of(&json!({"cost": {"amount": 1.0, "currency": "EUR"}}))), None);
    }
}
