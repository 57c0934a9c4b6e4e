/// One iteration of a `paginated` sequence: it loads pages, delivers them and waits, in the driver's task.
final class PaginatedStorage<Item: Sendable, Cursor: Hashable & Sendable>: Sendable {
    private let recipe: Paginated<Item, Cursor>
    private let outputs: UnsafeTransfer<Signal.AsyncIterator>?
    /// Discards pending outputs.
    private let forgetOutputs: (@Sendable () -> Void)?

    init(_ recipe: Paginated<Item, Cursor>) {
        self.recipe = recipe
        if let outputs = recipe.signal?.makeAsyncIterator() {
            forgetOutputs = outputs.forget
            self.outputs = UnsafeTransfer(outputs)
        } else {
            forgetOutputs = nil
            outputs = nil
        }
    }

    /// The operator's work, as the driver does it.
    func operate(_ driver: Driver<[Item], any Error>) async throws {
        let round = driver.beginRound()
        var outputs = outputs?.open()
        var machine = PaginatedStateMachine<Cursor>(initially: recipe.initially, hasSignal: outputs != nil)
        var failure: (any Error)?
        var action = machine.start()
        while !Task.isCancelled {
            switch action {
            case .load(let cursor, let page, let attempt):
                recipe.onStatus(.loading(page: page, attempt: attempt))
                do {
                    let loaded = try await load(cursor)
                    // An output before the page's delivery does not request another page: the `next()` that takes the
                    // page discards it.
                    guard await driver.offer(loaded.items, in: round, onTaken: forgetOutputs) else { return }
                    failure = nil
                    action = machine.delivered(next: loaded.next)
                } catch {
                    if Task.isCancelled { return }
                    // Outputs during the failed attempt do not request another one.
                    forgetOutputs?()
                    failure = error
                    action = machine.failed()
                    if page > 1 { recipe.onStatus(.failed(page: page, attempt: attempt, error)) }
                }
            case .sleep(let pages):
                recipe.onStatus(.dormant(pages: pages))
                action = await outputs?.next() == nil ? machine.signalEnded() : machine.output()
            case .sleepAfterFailure:
                action = await outputs?.next() == nil ? machine.signalEnded() : machine.output()
            case .failAsLoad:
                if let failure { throw failure }
                return
            case .fail(let repeated):
                throw repeated
            case .end(let pages):
                recipe.onStatus(.ended(pages: pages))
                return
            }
        }
    }

    private func load(_ cursor: Cursor?) async throws -> Page<Item, Cursor> {
        guard let cursor else { return try await recipe.first() }
        return try await recipe.next(cursor)
    }
}
