//! The program's own processes: started, asked, killed, started again, ended in order.

use ringonce::lab::stack::{Error, Folder, Program, Sandbox, Serve, ServeSetup};
use serde_json::json;

const QUICK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/config/example/quick.toml");

fn program() -> Program {
    Program::at(env!("CARGO_BIN_EXE_ringonce"))
}

#[tokio::test]
async fn a_service_is_killed_and_ended_on_one_store_and_one_log() {
    let folder = Folder::new().unwrap();
    let flags = ["--token-leeway", "2s"];
    let sandbox = Sandbox::start(&program(), &folder, &flags).await.unwrap();
    let state = sandbox.state().await.unwrap();
    assert!(state.sip_calls.is_empty());
    sandbox.throw(&json!({"name": "overload"})).await.unwrap();
    let refused = sandbox.throw(&json!({"name": "flood"})).await.unwrap_err();
    assert!(refused.to_string().contains("trunk_flush"), "{refused}");

    let setup = ServeSetup {
        config: vec![QUICK.into()],
        store: Some(folder.store("calls.db")),
        ..ServeSetup::default()
    };
    let setup = setup.set("livekit.url", sandbox.url());
    let mut serve = Serve::start(&program(), &folder, &setup).await.unwrap();
    let first = serve.ready().clone();
    serve.channel().await.unwrap();
    serve.process().kill().await.unwrap();
    assert_eq!(serve.process().id(), None);

    let mut serve = Serve::start(&program(), &folder, &setup).await.unwrap();
    assert_eq!(serve.ready()["deployment"], first["deployment"]);
    serve.process().terminate().unwrap();
    assert!(serve.process().wait().await.unwrap().success());
    let begun = |line: &serde_json::Value| line["event"] == "ready";
    assert_eq!(
        serve
            .process()
            .events()
            .unwrap()
            .iter()
            .filter(|line| begun(line))
            .count(),
        1
    );
    let whole = std::fs::read_to_string(serve.process().log()).unwrap();
    assert_eq!(whole.matches("\"event\":\"ready\"").count(), 2);
}

#[tokio::test]
async fn what_ends_early_is_told_with_its_last_words() {
    let folder = Folder::new().unwrap();
    let setup = ServeSetup::default().set("dial.ringing_timeout", "never");
    let error = Serve::start(&program(), &folder, &setup).await.unwrap_err();
    assert!(matches!(error, Error::Ended { .. }), "{error}");
    assert!(
        error.to_string().contains("dial.ringing_timeout"),
        "{error}"
    );
}
