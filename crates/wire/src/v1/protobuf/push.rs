//! Webhooks. The token and the credentials are read and never written in an answer.

use sabir_model as model;
use sabir_proto::v1 as proto;

use crate::peer_response::{PeerResponse, push_configs};
use crate::v1::push::{Authentication, PushConfig};
use crate::wire_types::{Violations, WireList};

pub(super) fn write_config(config: &model::PushConfig) -> proto::TaskPushNotificationConfig {
    let scheme = config.authentication.as_ref().and_then(|authentication| authentication.schemes.first());
    proto::TaskPushNotificationConfig {
        tenant: String::new(),
        id: config.id.as_ref().map(ToString::to_string).unwrap_or_default(),
        task_id: config.task.as_ref().map(ToString::to_string).unwrap_or_default(),
        url: config.url.clone(),
        token: String::new(),
        authentication: scheme
            .map(|scheme| proto::AuthenticationInfo { scheme: scheme.clone(), credentials: String::new() }),
    }
}

pub(super) fn write_configs(configs: &[model::PushConfig]) -> proto::ListTaskPushNotificationConfigsResponse {
    proto::ListTaskPushNotificationConfigsResponse {
        configs: configs.iter().map(write_config).collect(),
        next_page_token: String::new(),
    }
}

/// The config as the JSON dialect reads it, unchecked.
pub(super) fn config_params(config: proto::TaskPushNotificationConfig) -> PushConfig<'static> {
    PushConfig {
        tenant: Some(config.tenant.into()),
        id: Some(config.id.into()),
        task_id: Some(config.task_id.into()),
        url: Some(config.url.into()),
        token: Some(config.token.into()),
        authentication: config.authentication.map(|authentication| Authentication {
            scheme: Some(authentication.scheme.into()),
            credentials: Some(authentication.credentials.into()),
        }),
    }
}

pub(super) fn read_config(config: proto::TaskPushNotificationConfig) -> Result<model::PushConfig, Violations> {
    config_params(config).try_into()
}

pub(super) fn read_configs(
    response: proto::ListTaskPushNotificationConfigsResponse,
) -> Result<PeerResponse, Violations> {
    let configs: Vec<PushConfig<'_>> = response.configs.into_iter().map(config_params).collect();
    push_configs(WireList::<_, ()>::Wire(configs), "configs")
}
