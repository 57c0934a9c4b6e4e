// A client that may not read the published file of a pipeline sees no text that may quote the content, such as keys of
// branches, messages of jq and of programs, digests and signed comments.

/// The text that replaces a reason that may quote content.
package enum WithheldContent {
    package static let reason = "only those who may read the published file see the reason"
}

extension RunStatus {
    package func withholdingContent() -> RunStatus {
        var shown = self
        if failure != nil { shown.failure = publicFailure ?? WithheldContent.reason }
        shown.causes = causes.map { $0.withholdingContent() }
        return shown
    }
}

extension CauseStatus {
    /// Causes without a number belong to the pipeline. Their detail may quote content: the place of a further page
    /// consists of keys.
    func withholdingContent() -> CauseStatus {
        var shown = self
        if number == nil { shown.detail = nil }
        return shown
    }
}

extension GenerationStatus {
    package func withholdingContent() -> GenerationStatus {
        var shown = self
        shown.digest = ""
        shown.comment = nil
        return shown
    }
}

extension PipelineStatus {
    package func withholdingContent() -> PipelineStatus {
        var shown = self
        shown.generation = generation?.withholdingContent()
        shown.lastRun = lastRun?.withholdingContent()
        shown.lastCauses = lastCauses.map { $0.withholdingContent() }
        if let failure { shown.failure?.message = failure.publicMessage ?? WithheldContent.reason }
        shown.candidate?.digest = ""
        shown.candidate?.reason = WithheldContent.reason
        shown.branches?.failing = []
        shown.more?.places = []
        shown.withdrawn?.digest = ""
        shown.hooks = hooks?.map { hook in
            var hook = hook
            if hook.error != nil { hook.error = WithheldContent.reason }
            return hook
        }
        return shown
    }
}

extension PastGeneration {
    package func withholdingContent() -> PastGeneration {
        var shown = self
        shown.digest = ""
        return shown
    }
}

extension RefreshResult {
    package func withholdingContent() -> RefreshResult {
        var shown = self
        if failure != nil { shown.failure = publicFailure ?? WithheldContent.reason }
        return shown
    }
}

extension LoadMoreResult {
    package func withholdingContent() -> LoadMoreResult {
        var shown = self
        if failure != nil { shown.failure = WithheldContent.reason }
        return shown
    }
}

extension ControlEvent {
    package func withholdingContent() -> ControlEvent {
        var shown = self
        shown.run = run?.withholdingContent()
        shown.generation = generation?.withholdingContent()
        // The detail of a pipeline's own signal, such as load-more, may quote content.
        if kind == .signal { shown.detail = nil }
        return shown
    }
}
