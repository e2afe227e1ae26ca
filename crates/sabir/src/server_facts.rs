//! What operators are told of the server that only the configuration knows (`/admin/v1/system`, `config`, `agents`).

use serde_json::value::to_raw_value;

use sabir_server::{ServerFacts, SettingFact, StoreAbout};

use crate::config::{Config, LoadedConfig, StoreUrl};

/// Every setting in force as `sabir config` prints it: secrets are masked.
pub fn settings(loaded: &LoadedConfig) -> Vec<SettingFact> {
    let fact = |setting: &crate::config::SettingValue| {
        let value = to_raw_value(&setting.value).expect("JSON can be written");
        SettingFact { name: setting.key.clone(), value, origin: setting.origin.to_string() }
    };
    loaded.values.iter().map(fact).collect()
}

pub fn of_config(config: &Config, settings: Vec<SettingFact>, urls: Vec<String>) -> ServerFacts {
    let kind_of = |agent: &crate::config::AgentConfig| (agent.id.clone(), agent.kind.name().to_owned());
    ServerFacts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("SABIR_COMMIT").map(str::to_owned),
        urls,
        store: store_about(&config.store.url, durability(&settings)),
        agent_kinds: config.agents.iter().map(kind_of).collect(),
        settings,
    }
}

fn durability(settings: &[SettingFact]) -> Option<String> {
    let setting = settings.iter().find(|setting| setting.name == "store.durability")?;
    serde_json::from_str(setting.value.get()).ok()
}

fn store_about(store: &StoreUrl, durability: Option<String>) -> StoreAbout {
    match store {
        StoreUrl::Memory => StoreAbout { kind: "memory", place: None, durability: None },
        StoreUrl::Sqlite(path) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            StoreAbout { kind: "sqlite", place: Some(path.display().to_string()), durability }
        }
        StoreUrl::Postgres(url) => StoreAbout { kind: "postgres", place: Some(url.to_string()), durability: None },
    }
}
