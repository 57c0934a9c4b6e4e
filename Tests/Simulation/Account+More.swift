import FreshetPipelines

/// Further pages: runs that are no checks, and leave alone what is known of those.
extension Account {
    /// A run asks for a further page.
    mutating func startedMore(
        _ order: RunOrder, at now: ContinuousClock.Instant, _ surroundings: Witness.HostEnvironment, copy: String?
    ) -> [String] {
        var faults = beginning(order, at: now, surroundings)
        if wishes.isEmpty { faults.append("run \(order.run) loads a page that nobody wants") }
        if needsNetwork, surroundings.awaySince != nil {
            faults.append("run \(order.run) loads a page while the network is away")
        }
        running = order.run
        lastRun = order.run
        copyBefore = copy
        pageRuns += 1
        return faults
    }

    mutating func endedMore(_ summary: RunSummary, at now: ContinuousClock.Instant, wallNow: Int64) -> [String] {
        let faults = running == summary.run ? [] : ["run \(summary.run) ends and was not under way"]
        running = nil
        noteRetryAfter(summary, at: now, wallNow: wallNow)
        return faults
    }

    /// Since the last look nothing that tells when the copy was checked can have changed, but by a check.
    mutating func looked(at lastCheck: Int64?, on disk: Int64?) -> [String] {
        defer {
            if running == nil { mayHaveBeenChecked = false }
            seenCheck = (lastCheck, disk)
        }
        guard !mayHaveBeenChecked, let seenCheck, seenCheck != (lastCheck, disk) else { return [] }
        return ["what is no check is taken for one"]
    }
}

/// What came of somebody's wish for a further page.
enum MoreAnswer: Sendable {
    case answered(RefreshAnswer)
    case refused(LoadMoreError)
}

extension Witness {
    /// Somebody wants a further page; returns the number of the wish.
    func wants(_ name: String) -> UInt64 {
        tell("\(name): load-more")
        return wish(of: name)
    }

    /// A wish was answered.
    func answers(_ wish: UInt64, of name: String, with answer: MoreAnswer) {
        tell("\(name): load-more: \(answer)")
        guard let wanted = take(wish, of: name) else {
            return expect(false, "\(name): wish \(wish) for a page is answered twice")
        }
        switch answer {
        case .answered(.ended(let summary)):
            expect(summary.reason.isLoadMore, "\(name): a further page was wanted, and run \(summary.run) is none")
            expect(summary.ended >= wanted, "\(name): run \(summary.run) had ended when its page was wanted")
        case .answered(.refused(.held)):
            expect(isRefused(name), "\(name): a page is refused, and it is not held")
        case .answered, .refused: break
        }
    }

    /// A check brings the first page, a further page follows those that were there.
    func expectPages(of name: String, at url: String, _ summary: RunSummary, before: String?, kept: String) {
        let items = Pages.items(of: kept)
        let earlier = summary.reason.isLoadMore ? Pages.items(of: before ?? "") : []
        if summary.outcome == .unchanged, summary.reason.isLoadMore {
            return expect(
                items == earlier, "\(name): the copy is '\(kept)' and was \(earlier), unchanged as it is said")
        }
        let said = saidItems(at: Pages.url(of: earlier.count + 1, at: url), since: summary.started)
        expect(
            items.dropLast() == earlier[...] && items.last.map(said.contains) == true,
            "\(name): the copy is '\(kept)', and not what the origin said: \(said), behind \(earlier)")
    }
}

extension Machine {
    /// `freshetctl load-more --wait`.
    func loadMore(_ name: String) throws {
        guard let runner = daemon?.hosted[name] else { return }
        let wish = witness.wants(name)
        _ = Task(executorPreference: place.executor) { [witness, flaw] in
            let answer: MoreAnswer
            do throws(LoadMoreError) {
                switch flaw {
                case .losesWishes: return
                case .checksForPages: answer = .answered(await runner.refresh(force: false))
                default: answer = .answered(try await runner.loadMore(at: []).answer)
                }
            } catch {
                answer = .refused(error)
            }
            witness.answers(wish, of: name, with: answer)
        }
        try settle()
    }
}
