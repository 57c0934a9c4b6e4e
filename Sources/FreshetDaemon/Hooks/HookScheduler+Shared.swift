import FreshetControl
import FreshetEmitters
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import FreshetSystemd
import Logging
import Synchronization

/// Runs of hooks of several pipelines.
extension HookScheduler {
    func run(_ order: SharedHookMachine.Order) async {
        let identity = order.hook.identity
        await dependencies.store.remember(order.changes.map { ($0.pipeline, $0.memory) }, of: identity)
        let began = dependencies.clock.now
        let restricted = restrictedPipelines(of: order.hook)
        var error: String?
        do throws(FetchError) {
            try await perform(order, logsOutput: restricted.isEmpty)
        } catch let failed {
            guard case .failed(let failure) = failed else { return apply { $0.ended(order, .cancelled, at: $1) } }
            error = dependencies.redactor.text(failure.message)
        }
        let memories = memories(after: error, of: order, restricted)
        let counted = state.withLock { state in
            zip(order.changes, memories).filter { state.machine.counts($0.0, of: order) }
        }
        await dependencies.store.remember(counted.map { ($0.pipeline, $1) }, of: identity)
        apply { $0.ended(order, .ended(memories), at: $1) }
        let shown = restricted.isEmpty ? error : error.map { _ in WithheldContent.reason }
        log(shown, of: order, took: dependencies.clock.now - began)
        for change in order.changes { dependencies.ended(change.pipeline, change.generation.digest, shown) }
        dependencies.statusChanged()
    }

    /// The pipelines whose copies not everybody may read. The output and the error of a command may quote the content
    /// of each pipeline that the hook names, because its program may read all of these copies.
    private func restrictedPipelines(of hook: SharedHookDefinition) -> Set<String> {
        guard hook.action.unit == nil else { return [] }
        return Set(hook.pipelines.filter { !dependencies.readers.isPublic($0) })
    }

    /// The states of the pipelines after a run. A pipeline has the error only if everybody may read the others.
    private func memories(
        after error: String?, of order: SharedHookMachine.Order, _ restricted: Set<String>
    ) -> [StoredHookState] {
        guard let error else { return order.changes.map { $0.memory.succeeded() } }
        let now = dependencies.clock.wallNow
        return order.changes.map { change in
            let isShown = restricted.isEmpty || restricted == [change.pipeline]
            return change.memory.failed(isShown ? error : WithheldContent.reason, at: now)
        }
    }

    private func perform(_ order: SharedHookMachine.Order, logsOutput: Bool) async throws(FetchError) {
        let action = order.hook.action
        if let unit = action.unit { return try await dependencies.units.reload(unit, within: action.timeout) }
        var input = SharedHookChanges(order, time: dependencies.clock.wallNow.microseconds)
        let comparesUntil = dependencies.clock.now + SharedHookChanges.longestComparisons
        for order in order.changes {
            guard !Task.isCancelled else { throw .cancelled }
            let isCompared = input.comparesContent && dependencies.clock.now < comparesUntil
            input.append(await change(order, comparesContent: isCompared), isCompared: isCompared)
        }
        let (dependencies, number) = (dependencies, nextNumber())
        // A thousand changes are encoded elsewhere, not on the event loop.
        let content = await dependencies.workers.run("program") { [input] in Array(input.text.utf8) }
        try await dependencies.files.withFile(content, number: number, on: dependencies.workers) {
            (path) throws(FetchError) in
            try await dependencies.programs.perform(
                action.command, ["FRESHET_CHANGE": path, "FRESHET_HOOK": order.hook.name], timeout: action.timeout
            ) { [self] logging in
                if logsOutput { log(logging, of: order) }
            }
        }
    }

    // MARK: The journal

    /// How many changed pipelines a line names.
    private static let mostNames = 20
    /// How many changed pipelines an entry of the journal has as fields, so that their logs have the entry: journald
    /// accepts 1,024 fields, and each of a hundred lines of output has these fields.
    private static let mostPipelineFields = 100

    private static func pipelines(_ order: SharedHookMachine.Order) -> Logger.MetadataValue {
        .array(order.changes.prefix(mostPipelineFields).map { .string($0.pipeline) })
    }

    private func fields(_ order: SharedHookMachine.Order) -> [JournalField: Logger.MetadataValue] {
        let names = order.changes.prefix(Self.mostNames).map(\.pipeline)
        let rest = order.changes.count - names.count
        return [
            .hook: .string(order.hook.name), .pipeline: Self.pipelines(order),
            .pipelines: .stringConvertible(order.changes.count),
            .names: .string(names.joined(separator: " ") + (rest > 0 ? " and \(rest) more" : "")),
        ]
    }

    private func log(_ logging: TrustedPrograms.OutputHandling, of order: SharedHookMachine.Order) {
        var fields: [JournalField: Logger.MetadataValue] = [
            .hook: .string(order.hook.name), .pipeline: Self.pipelines(order),
        ]
        switch logging {
        case .line(let line):
            fields[.output] = .string(line)
            dependencies.limiter.log(.hookOutput, fields)
        case .leftOut(let count):
            let logs = dependencies.limiter.logs(.hookOutput, .linesLeftOut)
            fields[.count] = .stringConvertible(count)
            dependencies.log.log(
                .hookOutput, text: "the hook wrote {count} more lines, which are not logged",
                level: logs ? nil : .debug, fields)
        }
    }

    private func log(_ error: String?, of order: SharedHookMachine.Order, took duration: Duration) {
        var fields = fields(order)
        fields[.duration] = .string(duration.rounded)
        let identity = order.hook.identity
        guard let error else {
            state.withLock { $0.failures[identity] = nil }
            if order.attempt > 1 { fields[.failures] = .stringConvertible(order.attempt - 1) }
            return dependencies.limiter.log(.sharedHookDone, fields)
        }
        let now = dependencies.clock.now
        let (decision, next) = state.withLock { state in
            let pending = order.changes.first.map { state.machine.pendingHooks(of: $0.pipeline) } ?? []
            return (
                state.failures[identity, default: [:]][identity, default: RepeatedFailureLimiter()].failed(at: now),
                pending.first { $0.shared == order.hook.name }?.next
            )
        }
        fields[.error] = .string(error)
        fields[.failures] = .stringConvertible(order.attempt)
        if let next { fields[.next] = .string("in \((next - now).rounded)") }
        switch decision {
        case .suppress: dependencies.log.log(.sharedHookFailed, level: .debug, fields)
        case .log(let suppressed):
            if suppressed > 0 { fields[.repeated] = .stringConvertible(suppressed) }
            dependencies.limiter.log(.sharedHookFailed, fields)
        }
    }
}
