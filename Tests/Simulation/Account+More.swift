import FreshetModel
import FreshetPipelines

/// Further pages: runs that are not checks and do not change the state of checks.
extension Account {
    /// A run for a further page was requested.
    mutating func startedMore(
        _ order: RunOrder, at now: BootInstant, _ environment: Witness.HostEnvironment, copy: String?
    ) -> [String] {
        var errors = beginning(order, at: now, environment)
        if pageRequests.isEmpty { errors.append("run \(order.run) loads a page without a request") }
        if needsNetwork, environment.awaySince != nil {
            errors.append("run \(order.run) loads a page while the network is away")
        }
        running = order.run
        lastRun = order.run
        copyBefore = copy
        pageRuns += 1
        return errors
    }

    mutating func endedMore(_ summary: RunSummary, at now: BootInstant, wallNow: WallTime) -> [String] {
        let errors = running == summary.run ? [] : ["run \(summary.run) ends and was not in progress"]
        running = nil
        recordRetryAfter(summary, at: now, wallNow: wallNow)
        return errors
    }

    /// Since the last observation, only a check can have changed the state that says when the copy was checked.
    mutating func looked(at lastCheck: WallTime?, on disk: WallTime?) -> [String] {
        defer {
            if running == nil { mayHaveBeenChecked = false }
            seenCheck = (lastCheck, disk)
        }
        guard !mayHaveBeenChecked, let seenCheck, seenCheck != (lastCheck, disk) else { return [] }
        return ["a run that is not a check counts as one"]
    }
}

/// The answer to a request for a further page.
enum MoreAnswer: Sendable {
    case answered(RefreshAnswer)
    case refused(LoadMoreError)
}

extension Witness {
    /// Requests a further page; returns the number of the request.
    func requestPage(_ name: String) -> UInt64 {
        notify("\(name): load-more")
        return pageRequest(of: name)
    }

    /// A request was answered.
    func answers(_ pageRequest: UInt64, of name: String, with answer: MoreAnswer) {
        notify("\(name): load-more: \(answer)")
        guard let requestedAt = take(pageRequest, of: name) else {
            return expect(false, "\(name): page request \(pageRequest) is answered twice")
        }
        switch answer {
        case .answered(.ended(let summary)):
            expect(summary.reason.isLoadMore, "\(name): a page was requested, but run \(summary.run) is a check")
            expect(summary.ended >= requestedAt, "\(name): run \(summary.run) had ended when its page was requested")
        case .answered(.refused(.held)):
            expect(isRefused(name), "\(name): a page is refused, and it is not held")
        case .answered, .refused: break
        }
    }

    /// A check fetches the first page; a further page follows the pages that were there.
    func expectPages(of name: String, at url: String, _ summary: RunSummary, before: String?, kept: String) {
        let items = Pages.items(of: kept)
        let earlier = summary.reason.isLoadMore ? Pages.items(of: before ?? "") : []
        if summary.outcome == .unchanged, summary.reason.isLoadMore {
            return expect(
                items == earlier, "\(name): the copy is '\(kept)' and was \(earlier), but is reported unchanged")
        }
        let sent = sentItems(at: Pages.url(of: earlier.count + 1, at: url), since: summary.started)
        expect(
            items.dropLast() == earlier[...] && items.last.map(sent.contains) == true,
            "\(name): the copy is '\(kept)', and not what the origin sent: \(sent), behind \(earlier)")
    }
}

extension Machine {
    /// `freshetctl load-more --wait`.
    func loadMore(_ name: String) throws {
        guard let runner = daemon?.hosted[name] else { return }
        let pageRequest = witness.requestPage(name)
        _ = Task(executorPreference: place.executor) { [witness, flaw] in
            let answer: MoreAnswer
            do throws(LoadMoreError) {
                switch flaw {
                case .losesPageRequests: return
                case .checksForPages: answer = .answered(await runner.refresh(force: false))
                default: answer = .answered(try await runner.furtherPages.load(at: []).answer)
                }
            } catch {
                answer = .refused(error)
            }
            witness.answers(pageRequest, of: name, with: answer)
        }
        try settle()
    }
}
