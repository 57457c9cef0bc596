//! What is sound in a configuration, and unwise all the same.

use secrecy::{ExposeSecret, SecretString};

use super::Config;

/// The fewest bytes of a secret that LiveKit does not complain of: its tokens are signed with
/// HS256, which is as strong as a key of 256 bits (`ValidateKeys` of livekit-server 1.13.5, which
/// takes a shorter one, and logs an error when it starts).
const SECRET_MIN: usize = 32;

impl Config {
    /// What a person should know of it: a clause and the remedy each. No secret is in it.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let own = ("livekit.api_secret".to_owned(), &self.livekit.api_secret);
        let own = own.1.as_ref().map(|secret| (own.0, secret));
        let others = (self.webhook_keys.iter())
            .map(|(name, secret)| (format!("the secret of webhook_keys.{name}"), secret));
        (own.into_iter().chain(others))
            .filter(|(_, secret)| is_short(secret))
            .map(|(whose, _)| {
                format!(
                    "{whose} has fewer than {SECRET_MIN} characters, which LiveKit takes and calls \
                     too short: make another by `livekit-server generate-keys`, for both"
                )
            })
            .collect()
    }
}

fn is_short(secret: &SecretString) -> bool {
    secret.expose_secret().len() < SECRET_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_is_too_short_is_remarked_on_and_not_shown() {
        let of = |secret: &str| {
            let text = format!("[livekit]\napi_secret = \"{secret}\"\n");
            Config::from_toml(&text).unwrap().remarks()
        };
        let short = of(&"x".repeat(31));
        assert_eq!(short.len(), 1);
        assert!(short[0].starts_with("livekit.api_secret has fewer than 32"));
        assert!(!short[0].contains("xxx"));
        assert!(of(&"x".repeat(32)).is_empty());
        assert!(Config::default().remarks().is_empty(), "none is configured");
    }
}
