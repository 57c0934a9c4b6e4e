internal import FreshetSignals

/// Why a further page cannot be requested.
package enum LoadMoreError: Error, Hashable, Sendable {
    /// No source of the pipeline is paginated.
    case noPages
    /// All pages are loaded by each check.
    case notOnDemand
    /// There is no copy yet whose pages could continue.
    case notLoaded
    /// All pages are loaded.
    case nothingMore
    /// There is no set of pages at this place; some existing places.
    case unknownPlace([[String]])
    /// There are several places with further pages.
    case severalPlaces(PagesReport)
    case refused(RefreshRefusal)
}

/// Requests for further pages of a pipeline, from any thread.
package struct PageRequests: Sendable {
    private let runner: PipelineRunner

    init(_ runner: PipelineRunner) { self.runner = runner }

    /// Requests one further page, and awaits the end of the run that loads it. If the task is cancelled, it returns
    /// ``RefreshAnswer/stopped``; the run continues.
    ///
    /// - Parameter place: the keys on the path to the set's branch; empty: the pipeline's own pages, or the only place
    ///   with further pages.
    /// - Returns: the place, and the answer.
    package func load(at place: [String]) async throws(LoadMoreError) -> (place: [String], answer: RefreshAnswer) {
        let place = try existing(place)
        let answer = await runner.answer { runner.mailbox.post(.loadMore(request: $0, place: place)) }
        return (place, answer)
    }

    /// Requests one further page without waiting for it.
    ///
    /// - Returns: the place.
    @discardableResult
    package func request(at place: [String]) throws(LoadMoreError) -> [String] {
        let place = try check(place)
        runner.mailbox.post(.loadMore(request: nil, place: place))
        return place
    }

    /// Checks that a further page may be requested now.
    ///
    /// - Returns: the place.
    @discardableResult
    package func check(_ place: [String]) throws(LoadMoreError) -> [String] {
        let place = try existing(place)
        let now = runner.world.clock.now
        let refusal = runner.state.withLock { state in
            state.machine.conditions.loadMoreRefusal(state.machine.settings, at: now)
        }
        if let refusal { throw .refused(refusal) }
        return place
    }

    /// The state of a set; nil: there is no such set.
    package func state(at place: [String]) -> PagesState? {
        runner.state.withLock { state in state.runs.pages.first { $0.path == place } }
    }

    private func existing(_ place: [String]) throws(LoadMoreError) -> [String] {
        try runner.state.withLock { state throws(LoadMoreError) in
            let paged = state.configuration.definition.stage.all.compactMap(\.pages)
            guard !paged.isEmpty else { throw .noPages }
            guard paged.contains(where: \.loadsOnDemand) else { throw .notOnDemand }
            // The result of a check in progress is not known yet.
            let isChecking = !state.machine.phase.isBetweenChecks
            guard !state.runs.pages.isEmpty else { throw .notLoaded }
            if let known = state.runs.pages.first(where: { $0.path == place }) {
                if known.hasMore || isChecking { return place }
                throw .nothingMore
            }
            guard place.isEmpty else {
                throw .unknownPlace(state.runs.pages.prefix(PagesReport.mostShown).map(\.path))
            }
            guard let report = PagesReport(state.runs.pages) else { throw .nothingMore }
            guard report.total == 1, let only = report.places.first else { throw .severalPlaces(report) }
            return only.path
        }
    }
}

extension PipelineRunner {
    package var furtherPages: PageRequests { PageRequests(self) }
}
