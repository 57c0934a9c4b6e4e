import ControlTestSupport
import FreshetControl
import TestSupport
import Testing

@testable import FreshetCommands

@Suite(.serialized, .hangLimit) struct LoadMoreVerbTests {
    private func check(
        _ line: String, _ answer: Result<LoadMoreResult, ControlError>? = nil, rights: ControlRights = ownRights,
        status: CommandStatus = .success, output: String = "", printError: String = "", asked: [String] = [],
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let service = ScriptedService(["homepage"])
        service.change { $0.loadedMore = answer }
        try await expect(
            line, of: service, rights: rights, status: status, output: output, printError: printError, asked: asked,
            sourceLocation: sourceLocation)
    }

    @Test("without --wait a page is requested, for the named branch or for the only branch")
    func requested() async throws {
        try await check(
            "load-more homepage", printError: "homepage: a further page is requested\n", asked: ["load-more homepage"])
        try await check(
            "load-more homepage comedy 2", printError: "homepage comedy 2: a further page is requested\n",
            asked: ["load-more homepage comedy 2"])
    }

    @Test("with --wait the outcome is printed, and whether there are more pages")
    func waited() async throws {
        var result = LoadMoreResult(
            name: "homepage", path: ["comedy"], outcome: .changed, run: 4, generation: 3, size: 2_048,
            durationUSec: 20_000, pages: 2, hasMore: true)
        try await check(
            "load-more homepage comedy --wait", .success(result),
            output: "homepage comedy: changed, generation 3, 2 KiB in 20 ms; 2 pages, more exist\n",
            asked: ["load-more homepage comedy wait"])
        result.outcome = .unchanged
        result.hasMore = false
        try await check(
            "load-more homepage comedy --wait", .success(result),
            output: "homepage comedy: unchanged in 20 ms; 2 pages, nothing more to load\n",
            asked: ["load-more homepage comedy wait"])
        result.outcome = .failed
        result.failure = "page 3: the origin answered 503"
        try await check(
            "load-more homepage comedy --wait", .success(result), status: .failure,
            printError: "freshetctl: homepage comedy: failed: page 3: the origin answered 503\n",
            asked: ["load-more homepage comedy wait"])
        result.outcome = .superseded
        try await check(
            "load-more homepage comedy --wait", .success(result), status: .failure,
            printError:
                "freshetctl: homepage comedy: superseded: a run of the whole pipeline started, which resets the loaded "
                + "pages\n", asked: ["load-more homepage comedy wait"])
    }

    @Test("the end has its own status, and the branches are listed if one has to be named")
    func refused() async throws {
        try await check(
            "load-more homepage", .failure(.nothingMore(name: "homepage", path: [])), status: .nothingMore,
            printError: "freshetctl: nothing more to load: 'homepage' is complete\n", asked: ["load-more homepage"])
        let more = MorePages(
            total: 3, places: [.init(path: ["comedy"], pages: 1), .init(path: ["news", "2"], pages: 2)])
        try await check(
            "load-more homepage", .failure(.severalBranches(name: "homepage", more: more)), status: .failure,
            printError:
                "freshetctl: 'homepage' has more pages in 3 branches; name one: comedy (after 1 page), news 2 (after 2 pages) "
                + "and 1 others\n", asked: ["load-more homepage"])
        try await check(
            "load-more homepage comdy",
            .failure(.noSuchBranch(name: "homepage", path: ["comdy"], suggestion: "comedy")), status: .failure,
            printError: "freshetctl: no pages of 'homepage' are loaded on demand at 'comdy'; did you mean 'comedy'?\n",
            asked: ["load-more homepage comdy"])
        try await check(
            "load-more homepage", .failure(.cannotLoadMore(name: "homepage", reason: "it has no copy yet")),
            status: .failure, printError: "freshetctl: cannot load more of 'homepage': it has no copy yet\n",
            asked: ["load-more homepage"])
        try await check(
            "load-more homepage", .failure(.tryLater(TryLaterHint(reason: "the network is not reachable"))),
            status: .tryLater, printError: "freshetctl: nothing was requested: the network is not reachable\n",
            asked: ["load-more homepage"])
    }

    @Test("a user without permission is refused")
    func rights() async throws {
        try await check(
            "load-more homepage", rights: strangerRights, status: .notPermitted,
            printError: "freshetctl: permission denied: be root or a member of group freshet ('adduser NAME "
                + "freshet')\n")
    }
}
