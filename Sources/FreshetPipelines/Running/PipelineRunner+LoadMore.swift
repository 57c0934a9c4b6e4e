internal import FreshetSignals

/// Why no further page can be asked for.
package enum LoadMoreError: Error, Hashable, Sendable {
    /// Nothing of the pipeline comes in pages.
    case noPages
    /// Its pages are all loaded without being asked for.
    case notOnDemand
    /// There is no copy whose pages could go on, or it is only being made.
    case notLoaded
    /// Everything is there that there is.
    case nothingMore
    /// No set of pages is at this place; some of those that there are.
    case unknownPlace([[String]])
    /// There are several places.
    case severalPlaces(PagesReport)
    case refused(RefreshRefusal)
}

/// Further pages, on demand. From any thread.
extension PipelineRunner {
    /// Asks for one further page, and awaits the end of the run that loads it. Cancelled, it returns
    /// ``RefreshAnswer/stopped``; the run goes on.
    ///
    /// - Parameter place: the keys that lead to the set's branch; empty: the pipeline's own pages, or the only place where
    ///   there are more.
    /// - Returns: the place, and what came of it.
    package func loadMore(
        at place: [String]
    ) async throws(LoadMoreError) -> (place: [String], answer: RefreshAnswer) {
        let place = try existing(place)
        return (place, await answer { .loadMore(request: $0, place: place) })
    }

    /// Asks for one further page without waiting for it.
    ///
    /// - Returns: its place.
    @discardableResult
    package func requestMore(at place: [String]) throws(LoadMoreError) -> [String] {
        let place = try mayLoadMore(at: place)
        mailbox.post(.loadMore(request: nil, place: place))
        return place
    }

    /// Whether one further page may be asked for now.
    ///
    /// - Returns: its place.
    @discardableResult
    package func mayLoadMore(at place: [String]) throws(LoadMoreError) -> [String] {
        let place = try existing(place)
        let now = world.clock.now
        if let refusal = state.withLock({ $0.machine.loadMoreRefusal(at: now) }) { throw .refused(refusal) }
        return place
    }

    /// A set's state; nil: there is no such set.
    package func pages(at place: [String]) -> PagesState? {
        state.withLock { state in state.pages.first { $0.path == place } }
    }

    private func existing(_ place: [String]) throws(LoadMoreError) -> [String] {
        try state.withLock { state throws(LoadMoreError) in
            let paged = state.definition.stage.all.compactMap(\.pages)
            guard !paged.isEmpty else { throw .noPages }
            guard paged.contains(where: \.loadsOnDemand) else { throw .notOnDemand }
            // What a check that is under way leaves is not known yet.
            let isChecking = state.machine.run.map { !$0.isLoadMore } ?? false
            guard !state.pages.isEmpty else { throw .notLoaded }
            if let known = state.pages.first(where: { $0.path == place }) {
                if known.hasMore || isChecking { return place }
                throw .nothingMore
            }
            guard place.isEmpty else {
                throw .unknownPlace(state.pages.prefix(PagesReport.mostShown).map(\.path))
            }
            guard let report = PagesReport(state.pages) else { throw .nothingMore }
            guard report.total == 1, let only = report.places.first else { throw .severalPlaces(report) }
            return only.path
        }
    }
}
