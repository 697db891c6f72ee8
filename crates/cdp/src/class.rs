//! What a command of the DevTools Protocol does, as far as the gate needs to know.

/// How a command relates to the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// It changes something, or is not known not to: needs a permit.
    Acts,
    /// It only reads, and what it reads may be a secret of the person in control: needs a permit too.
    Observes,
    /// It neither changes nor shows anything of a page: passes at any time.
    Neutral,
    /// It would lead past the gate, or end the browser for everybody: never passes.
    Forbidden,
}

/// The class of the command `method`. A command that is not listed acts.
pub fn class(method: &str) -> Class {
    if NEUTRAL.contains(&method) {
        Class::Neutral
    } else if OBSERVES.contains(&method) {
        Class::Observes
    } else if FORBIDDEN.contains(&method) || method.starts_with("Extensions.") {
        Class::Forbidden
    } else {
        Class::Acts
    }
}

/// Commands that pass in human time. `Runtime.runIfWaitingForDebugger` lets a tab go on that its person
/// has opened.
const NEUTRAL: &[&str] = &[
    "Browser.getVersion",
    "Runtime.releaseObject",
    "Runtime.releaseObjectGroup",
    "Runtime.runIfWaitingForDebugger",
    "Schema.getDomains",
    "Target.detachFromTarget",
    "Target.setDiscoverTargets",
];

/// Commands that read what is in pages, or where they are.
const OBSERVES: &[&str] = &[
    "Accessibility.getAXNodeAndAncestors",
    "Accessibility.getChildAXNodes",
    "Accessibility.getFullAXTree",
    "Accessibility.getPartialAXTree",
    "Accessibility.getRootAXNode",
    "Accessibility.queryAXTree",
    "Browser.getWindowBounds",
    "Browser.getWindowForTarget",
    "CSS.getComputedStyleForNode",
    "CSS.getInlineStylesForNode",
    "CSS.getMatchedStylesForNode",
    "CSS.getStyleSheetText",
    "DOM.describeNode",
    "DOM.getAttributes",
    "DOM.getBoxModel",
    "DOM.getContentQuads",
    "DOM.getDocument",
    "DOM.getFrameOwner",
    "DOM.getNodeForLocation",
    "DOM.getOuterHTML",
    "DOM.querySelector",
    "DOM.querySelectorAll",
    "DOM.requestChildNodes",
    "DOMSnapshot.captureSnapshot",
    "DOMStorage.getDOMStorageItems",
    "IO.read",
    "IndexedDB.requestData",
    "IndexedDB.requestDatabase",
    "IndexedDB.requestDatabaseNames",
    "Memory.getDOMCounters",
    "Network.getCookies",
    "Network.getRequestPostData",
    "Network.getResponseBody",
    "Page.captureScreenshot",
    "Page.captureSnapshot",
    "Page.getAppManifest",
    "Page.getFrameTree",
    "Page.getLayoutMetrics",
    "Page.getNavigationHistory",
    "Page.getResourceContent",
    "Page.getResourceTree",
    "Page.printToPDF",
    "Performance.getMetrics",
    "Runtime.getHeapUsage",
    "Runtime.getProperties",
    "Storage.getCookies",
    "Storage.getUsageAndQuota",
    "SystemInfo.getInfo",
    "SystemInfo.getProcessInfo",
    "Target.getBrowserContexts",
    "Target.getTargetInfo",
    "Target.getTargets",
];

/// Commands that would open a port, tunnel other commands past the gate, give a page the run of the browser,
/// have code run in pages that a person opens, stop the person's requests, or end the browser. So would all
/// of extensions.
const FORBIDDEN: &[&str] = &[
    "Browser.close",
    "Browser.crash",
    "Browser.crashGpuProcess",
    "Browser.executeBrowserCommand",
    "Network.setRequestInterception",
    "Page.addCompilationCache",
    "Page.addScriptToEvaluateOnLoad",
    "Target.exposeDevToolsProtocol",
    "Target.openDevTools",
    "Target.sendMessageToTarget",
    "Target.setRemoteLocations",
    "Tethering.bind",
    "Tethering.unbind",
];

/// Whether an event reaches clients in human time: those by which they keep up with which pages, frames
/// and scripts there are, and that what they wait for has ended. Events with what is in a page or its
/// requests do not.
pub(crate) fn passes_in_human_time(event: &str) -> bool {
    const PASSING: &[&str] = &[
        "Inspector.detached",
        "Inspector.targetCrashed",
        "Inspector.targetReloadedAfterCrash",
        "Network.loadingFailed",
        "Network.loadingFinished",
        "Page.domContentEventFired",
        "Page.frameAttached",
        "Page.frameDetached",
        "Page.frameNavigated",
        "Page.frameStartedLoading",
        "Page.frameStartedNavigating",
        "Page.frameStoppedLoading",
        "Page.frameSubtreeWillBeDetached",
        "Page.lifecycleEvent",
        "Page.loadEventFired",
        "Page.navigatedWithinDocument",
        "Runtime.executionContextCreated",
        "Runtime.executionContextDestroyed",
        "Runtime.executionContextsCleared",
        "Target.attachedToTarget",
        "Target.detachedFromTarget",
        "Target.targetCrashed",
        "Target.targetCreated",
        "Target.targetDestroyed",
        "Target.targetInfoChanged",
        "DOM.documentUpdated",
    ];
    PASSING.contains(&event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_listed_acts() {
        for method in [
            "Input.dispatchMouseEvent",
            "Page.navigate",
            "Page.enable",
            "Runtime.enable",
            "Runtime.evaluate",
            "Runtime.callFunctionOn",
            "DOM.setAttributeValue",
            "Storage.setCookies",
            "Target.createTarget",
            "Target.setAutoAttach",
            "No.suchCommand",
            "",
        ] {
            assert_eq!(class(method), Class::Acts, "{method}");
        }
    }

    #[test]
    fn extensions_never_pass() {
        for method in ["Extensions.loadUnpacked", "Extensions.triggerAction"] {
            assert_eq!(class(method), Class::Forbidden, "{method}");
        }
    }

    #[test]
    fn no_command_has_two_classes() {
        let all: Vec<&str> = [NEUTRAL, OBSERVES, FORBIDDEN].concat();
        for (index, method) in all.iter().enumerate() {
            assert!(!all[..index].contains(method), "{method}");
        }
    }

    #[test]
    fn nothing_that_shows_a_page_passes_in_human_time() {
        for event in [
            "Network.requestWillBeSent",
            "Network.webSocketFrameSent",
            "Page.screencastFrame",
            "Runtime.consoleAPICalled",
            "DOM.characterDataModified",
            "Fetch.requestPaused",
        ] {
            assert!(!passes_in_human_time(event), "{event}");
        }
    }
}
