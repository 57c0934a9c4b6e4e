/// One iteration of a `publish`: it watches the signal and runs the body.
final class PublishStorage<S: AsyncSequence & Sendable, B: AsyncSequence & Sendable>: Sendable
where S.Failure == Never, B.Element: Sendable {
    private let outputs: UnsafeTransfer<S.AsyncIterator>
    /// Discards pending outputs, if the signal's iterator supports that.
    private let forgetOutputs: (@Sendable () -> Void)?
    private let body: @Sendable () throws(B.Failure) -> B
    private let runs: LatestRuns<Void, B.Element, B.Failure>

    init(
        _ outputs: sending S.AsyncIterator, runsAtStart: Bool, body: @escaping @Sendable () throws(B.Failure) -> B
    ) {
        forgetOutputs = (outputs as? any DiscardingIterator)?.forget
        self.outputs = UnsafeTransfer(outputs)
        self.body = body
        runs = LatestRuns(first: runsAtStart ? () : nil)
    }

    /// The operator's work, as the driver does it.
    func operate(_ driver: Driver<B.Element, B.Failure>) async throws(B.Failure) {
        try await runs.operate(
            driver,
            watch: { await self.watch(driver) },
            willStart: {
                // The run starts now, so it answers all outputs that are pending now.
                forgetOutputs?()
            },
            run: { (_, round) throws(B.Failure) in
                var elements = try self.body().makeAsyncIterator()
                try await elements.exhaust { await driver.offer($0, in: round) }
            })
    }

    private func watch(_ driver: Driver<B.Element, B.Failure>) async {
        if var outputs = outputs.open() {
            while await outputs.next(isolation: nil) != nil {
                runs.output((), of: driver)
            }
        }
        runs.noMoreOutputs()
    }
}
