import FreshetModel
import FreshetPipelines
import Logging

/// Publishes the copies again whose published files other programs have removed, and completes changes that failed
/// halfway.
///
/// One pass runs at a time; removals during a pass are merged into the next one. Copies that cannot be published or
/// recorded in the index, for instance because the disk is full, are tried again at growing intervals.
@DaemonActor
final class PublishedFileRestorer {
    static let firstRetry: Duration = .seconds(1)
    static let longestRetry: Duration = .seconds(60)

    private let context: DaemonContext
    private let host: PipelineHost
    private let lost: @DaemonActor (_ pipeline: String) -> Void
    /// Nil: the system does not allow it, which was logged.
    private(set) var watch: PublishedFileWatch?
    /// What the next pass restores.
    private var removed: PublishedFileWatch.Removal?
    /// The pipelines whose copies could not be published or recorded.
    private var failed: Set<String> = []
    private var isRetryDue = false
    private var isWorking = false
    private var retry: (any EngineTimer)?
    private var retryDelay = firstRetry
    /// When the next retry is due; nil: none is.
    private var retryDue: BootInstant?

    /// - Parameters:
    ///   - directory: The directory of the published files.
    ///   - lost: Called for a pipeline that keeps no intact content.
    init(
        _ context: DaemonContext, _ host: PipelineHost, directory: String,
        lost: @escaping @DaemonActor (_ pipeline: String) -> Void
    ) {
        self.context = context
        self.host = host
        self.lost = lost
        retry = context.clock.makeTimer { [weak self, tasks = context.tasks] in
            tasks.add { [weak self] in await self?.retryFailed() }
        }
        do {
            watch = try PublishedFileWatch(context.loop, directory: directory) {
                [weak self, tasks = context.tasks] removal in
                tasks.add { [weak self] in await self?.restore(removal) }
            }
        } catch {
            context.limiter.log(.fileUnwatched, [.error: .string("\(error)")])
        }
    }

    private func restore(_ removal: PublishedFileWatch.Removal) async {
        // The directory is watched before files are restored, so that no removal is missed.
        if removal == .unknown { watch?.renew() }
        if removed == nil { removed = removal } else { removed?.add(removal) }
        await work()
    }

    /// The repair of a copy has failed elsewhere: tries again later.
    func retryLater(_ pipeline: String) {
        let isFirst = failed.isEmpty
        failed.insert(pipeline)
        // Otherwise the timer is armed already, or is armed at the end of the pass.
        if isFirst, !isWorking { armRetry() }
    }

    private func retryFailed() async {
        (isRetryDue, retryDue) = (true, nil)
        await work()
    }

    private func work() async {
        guard !isWorking else { return }
        isWorking = true
        defer { isWorking = false }
        while !context.tasks.isEnding, removed != nil || isRetryDue {
            let removal = removed
            removed = nil
            if isRetryDue { retryDelay = min(retryDelay * 2, Self.longestRetry) }
            let retried = isRetryDue ? failed : []
            isRetryDue = false
            await pass { retried.contains($0.name) || removal?.concerns($0.definition.cache.file) == true }
            // If the directory above was removed too, a restored file or the next commit makes it again.
            if removal == .unknown || watch?.isWatching == false { watch?.renew() }
        }
        if failed.isEmpty {
            (retryDelay, retryDue) = (Self.firstRetry, nil)
            retry?.disarm()
        } else {
            armRetry()
        }
    }

    /// Arms the timer of the next retry. A pass for a removal does not postpone it.
    private func armRetry() {
        let due = retryDue ?? context.clock.now.advanced(by: retryDelay)
        retryDue = due
        retry?.arm(at: due)
    }

    private func pass(where isMissing: (PipelineRunner) -> Bool) async {
        for (index, runner) in host.running.map(\.runner).filter(isMissing).enumerated() {
            await context.giveWay(before: index, "published files")
            failed.remove(runner.name)
            switch await runner.restorer.restore(readsCopy: true) {
            case .whole: break
            case .failed: failed.insert(runner.name)
            case .lost: lost(runner.name)
            }
        }
        failed.formIntersection(host.running.map(\.runner.name))
    }
}

extension PublishedFileWatch.Removal {
    /// Whether the copy with this published file may be missing. Several files have a link and a stamp.
    fileprivate func concerns(_ file: String) -> Bool {
        switch self {
        case .files(let names): names.contains(file) || names.contains(file + ".stamp")
        case .unknown: true
        }
    }
}
