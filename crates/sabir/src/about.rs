//! What an agent says of itself, with what the configuration says instead.
//!
//! Cards and checks both come from the result, so what is configured here is shown and enforced alike.

use sabir_engine::{About, Inputs, Streaming};
use sabir_model::{Extension, Skill};

use crate::config::AgentConfig;

/// `own` is what the kind of agent says.
pub fn describe(own: About, agent: &AgentConfig) -> About {
    let listed = |skill: &Skill| !skill.input_modes.is_empty();
    let lists_inputs = !agent.input_modes.is_empty() || agent.skills.iter().any(listed);
    let mut about = own;
    about.name = agent.name.clone().unwrap_or(about.name);
    if about.name.is_empty() {
        about.name.clone_from(&agent.id);
    }
    about.description = agent.description.clone().unwrap_or(about.description);
    about.skills = skills(about.skills, agent);
    about.input_modes = modes(about.input_modes, &agent.input_modes, agent, |skill| &skill.input_modes);
    about.output_modes = modes(about.output_modes, &agent.output_modes, agent, |skill| &skill.output_modes);
    about.extensions = extensions(about.extensions, &agent.extensions);
    if !agent.streaming {
        about.streaming = Streaming::Refused;
    }
    if lists_inputs {
        about.takes = Inputs::Listed;
    }
    about
}

/// The configured skills, or the kind's own. Those have no say against modes that are configured for the agent.
fn skills(own: Vec<Skill>, agent: &AgentConfig) -> Vec<Skill> {
    if !agent.skills.is_empty() {
        return agent.skills.clone();
    }
    let mut skills = own;
    for skill in &mut skills {
        if !agent.input_modes.is_empty() {
            skill.input_modes.clear();
        }
        if !agent.output_modes.is_empty() {
            skill.output_modes.clear();
        }
    }
    skills
}

/// The default modes of the card. Where every skill lists modes, nothing else is meant by "default" than all of them.
fn modes(own: Vec<String>, configured: &[String], agent: &AgentConfig, of: fn(&Skill) -> &[String]) -> Vec<String> {
    if !configured.is_empty() {
        return configured.to_vec();
    }
    if agent.skills.is_empty() || agent.skills.iter().any(|skill| of(skill).is_empty()) {
        return own;
    }
    let mut all: Vec<String> = Vec::new();
    for mode in agent.skills.iter().flat_map(of) {
        if !all.contains(mode) {
            all.push(mode.clone());
        }
    }
    all
}

/// The kind's own and the configured ones, which stand for those of the same URI.
fn extensions(own: Vec<Extension>, configured: &[Extension]) -> Vec<Extension> {
    let mut all = own;
    for extension in configured {
        match all.iter_mut().find(|known| known.uri == extension.uri) {
            Some(known) => *known = extension.clone(),
            None => all.push(extension.clone()),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use sabir_agents::DemoAgent;
    use sabir_engine::Agent as _;

    use super::*;
    use crate::config::AgentKind;

    /// Skills with their modes, the default modes, and what is taken.
    fn say(skills: &[(&str, &[&str])], modes: &[&str]) -> String {
        let mut agent = AgentConfig::new("demo", AgentKind::Demo);
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        for (id, modes) in skills {
            agent.skills.push(Skill { id: (*id).to_owned(), input_modes: words(modes), ..Skill::default() });
        }
        agent.input_modes = words(modes);
        let about = describe(DemoAgent::new(Inputs::Anything).about(), &agent);
        let skills = about.skills.iter().map(|skill| format!("{}[{}]", skill.id, skill.input_modes.join(",")));
        let skills = skills.collect::<Vec<_>>().join(" ");
        format!("{skills} {} {:?}", about.input_modes.join(","), about.takes)
    }

    #[test]
    fn configured_modes_are_all_that_is_taken() {
        let (own, text, image) = ("text/plain,application/json", &["text/plain"][..], &["image/png"][..]);
        for (skills, modes, expected) in [
            (&[][..], &[][..], format!("echo[{own}] {own} Anything")),
            (&[], text, "echo[] text/plain Listed".to_owned()),
            (&[("a", &[][..])], &[], format!("a[] {own} Anything")),
            (&[("a", &[])], text, "a[] text/plain Listed".to_owned()),
            (&[("a", image)], &[], "a[image/png] image/png Listed".to_owned()),
            (&[("a", image), ("b", text)], &[], "a[image/png] b[text/plain] image/png,text/plain Listed".to_owned()),
            (&[("a", image), ("b", &[])], &[], format!("a[image/png] b[] {own} Listed")),
            (&[("a", image)], text, "a[image/png] text/plain Listed".to_owned()),
        ] {
            assert_eq!(say(skills, modes), expected, "{skills:?} {modes:?}");
        }
    }

    #[test]
    fn a_configured_extension_stands_for_the_one_of_the_same_uri() {
        let extension =
            |uri: &str, required| Extension { uri: uri.to_owned(), description: None, required, params: None };
        let own = vec![extension("urn:a", false), extension("urn:b", false)];
        let all = extensions(own, &[extension("urn:c", false), extension("urn:a", true)]);
        assert_eq!(all, [extension("urn:a", true), extension("urn:b", false), extension("urn:c", false)]);
    }
}
