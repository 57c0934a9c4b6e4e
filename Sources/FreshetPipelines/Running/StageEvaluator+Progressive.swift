import FreshetModel
internal import FreshetSignals

/// Publishes the list of branches before all branches have ended.
extension StageEvaluator {
    /// The pause between two published lists: short enough for people, with few enough generations.
    static let publishingPause: Duration = .seconds(1)

    /// The value that is shown for each branch until the branch has ended: its last value, whatever `on-error` says.
    /// Readers who had that value must not lose it while the branch runs.
    func interimOutcomes(for items: [BranchItem], in scope: EvaluationContext) async -> [Outcome] {
        var interimOutcomes: [Outcome] = []
        interimOutcomes.reserveCapacity(items.count)
        let stored = parts.branches(items.map(\.key), below: scope.path)
        for number in items.indices { interimOutcomes.append(.awaited(await stored.part(of: number)?.value)) }
        return interimOutcomes
    }

    /// The outcomes of all branches. Meanwhile partial lists are published, first when the first branch has ended and
    /// then after each pause. The branches do not wait for a publication.
    func latest(
        of branches: [Emitter<Outcome, FetchError>], until awaited: [Outcome],
        show: @escaping @Sendable ([Outcome]) async -> Void
    ) async throws(FetchError) -> [Outcome]? {
        let rows = accumulateLatestMany(zip(branches, awaited).map { $0.prepend($1) })
        let newest = CurrentValue<[Outcome]>([])
        let result: Result<[Outcome]?, FetchError> = await withTaskGroup { group in
            group.addTask {
                for await row in newest {
                    // The complete list is not a partial one: the caller commits it. A list without a new value is
                    // worse than the published one: its origin may be down.
                    guard row.contains(where: \.isNew), !row.allSatisfy(\.isIn) else { continue }
                    await show(row)
                    await world.clock.pause(for: Self.publishingPause)
                }
            }
            // A commit in progress is finished first.
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
}
