//! Webhooks, known by resource names. They are read with their secrets; only a request to another server has these written.

use sabir_model as model;
use sabir_proto::v03;

use super::super::proto::{TaskPushConfig, config_name};
use super::super::push::{Authentication, PushConfig};
use super::fields::{present, texts};

/// The config of an answer, without its secrets.
pub(super) fn write_task_config(config: &model::PushConfig) -> v03::TaskPushNotificationConfig {
    let name = config.task.as_ref().zip(config.id.as_ref());
    let mut written = write_with_secrets(config);
    written.token.clear();
    if let Some(authentication) = &mut written.authentication {
        authentication.credentials.clear();
    }
    v03::TaskPushNotificationConfig {
        name: name.map(|(task, id)| config_name(task.as_str(), id.as_str())).unwrap_or_default(),
        push_notification_config: Some(written),
    }
}

/// For the server that is to deliver to it.
pub(super) fn write_with_secrets(config: &model::PushConfig) -> v03::PushNotificationConfig {
    v03::PushNotificationConfig {
        id: config.id.as_ref().map(model::PushConfigId::to_string).unwrap_or_default(),
        url: config.url.clone(),
        token: config.token.clone().unwrap_or_default(),
        authentication: config.authentication.as_ref().map(|authentication| v03::AuthenticationInfo {
            schemes: authentication.schemes.clone(),
            credentials: authentication.credentials.clone().unwrap_or_default(),
        }),
    }
}

impl From<v03::TaskPushNotificationConfig> for TaskPushConfig<'static> {
    fn from(config: v03::TaskPushNotificationConfig) -> Self {
        TaskPushConfig {
            name: present(config.name),
            push_notification_config: config.push_notification_config.map(Into::into),
        }
    }
}

impl From<v03::PushNotificationConfig> for PushConfig<'static> {
    fn from(config: v03::PushNotificationConfig) -> Self {
        PushConfig {
            id: present(config.id),
            url: present(config.url),
            token: present(config.token),
            authentication: config.authentication.map(|authentication| Authentication {
                schemes: texts(authentication.schemes),
                credentials: present(authentication.credentials),
            }),
        }
    }
}
