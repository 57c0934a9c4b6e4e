internal import FreshetSignals

/// Branches whose list is shown before all of them are in.
extension StageEvaluator {
    /// So long after one list was shown the next one is: enough for people, and few enough generations.
    static let publishingPause: Duration = .seconds(1)

    /// What stands in the place of each branch until it is in: what it delivered last, whatever a failing one shows.
    /// Readers who had it are to miss nothing because it is being looked at.
    func placeholders(for items: [BranchItem], in scope: EvaluationContext) async -> [Outcome] {
        var placeholders: [Outcome] = []
        placeholders.reserveCapacity(items.count)
        for item in items {
            placeholders.append(.awaited(await parts.part(at: scope.path + [item.key])?.value))
        }
        return placeholders
    }

    /// The outcomes of branches when all are in; meanwhile what there is of them is shown, at once when the first is in
    /// and then after each pause. What is shown last is not awaited for the branches' sake: they go on.
    func latest(
        of branches: [Emitter<Outcome, FetchError>], until awaited: [Outcome],
        show: @escaping @Sendable ([Outcome]) async -> Void
    ) async throws(FetchError) -> [Outcome]? {
        let rows = accumulateLatestMany(zip(branches, awaited).map { $0.prepend($1) })
        let newest = CurrentValue<[Outcome]>([])
        let result: Result<[Outcome]?, FetchError> = await withTaskGroup { group in
            group.addTask {
                for await row in newest {
                    // The whole list is not a part of it: who awaits that commits it as what it is. A list in which
                    // nothing is new is worse than what readers have: its origin may be down.
                    guard row.contains(where: \.isNew), !row.allSatisfy(\.isIn) else { continue }
                    await show(row)
                    await pause()
                }
            }
            // A commit that is under way ends first.
            defer { group.cancelAll() }
            var outcomes: [Outcome]?
            do throws(FetchError) {
                for try await row in rows {
                    outcomes = row
                    newest.value = row
                }
            } catch {
                return .failure(error)
            }
            return .success(outcomes)
        }
        return try result.get()
    }

    private func pause() async {
        let isOver = CurrentValue(false)
        let timer = world.clock.makeTimer { isOver.value = true }
        timer.arm(at: world.clock.now.advanced(by: Self.publishingPause))
        for await over in isOver where over { break }
        timer.disarm()
    }
}
