import ControlTestSupport
import FreshetControl
import TestSupport
import Testing

@testable import FreshetCommands

@Suite(.serialized, .hangLimit) struct LoadMoreVerbTests {
    private func check(
        _ line: String, _ answer: Result<LoadMoreResult, ControlError>? = nil, rights: ControlRights = ownRights,
        status: CommandStatus = .success, output: String = "", talk: String = "", asked: [String] = [],
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let service = ScriptedService(["homepage"])
        service.change { $0.loadedMore = answer }
        try await expect(
            line, of: service, rights: rights, status: status, output: output, talk: talk, asked: asked,
            sourceLocation: sourceLocation)
    }

    @Test("without --wait a page is requested, at the place whose keys are named or at the only one")
    func requested() async throws {
        try await check(
            "load-more homepage", talk: "homepage: a further page is requested\n", asked: ["load-more homepage"])
        try await check(
            "load-more homepage comedy 2", talk: "homepage comedy 2: a further page is requested\n",
            asked: ["load-more homepage comedy 2"])
    }

    @Test("with --wait it says what came of it and whether there are more")
    func waited() async throws {
        var result = LoadMoreResult(
            name: "homepage", path: ["comedy"], outcome: .changed, run: 4, generation: 3, size: 2_048,
            durationUSec: 20_000, pages: 2, hasMore: true)
        try await check(
            "load-more homepage comedy --wait", .success(result),
            output: "homepage comedy: changed, generation 3, 2 KiB in 20 ms; 2 pages, there are more\n",
            asked: ["load-more homepage comedy wait"])
        result.outcome = .unchanged
        result.hasMore = false
        try await check(
            "load-more homepage comedy --wait", .success(result),
            output: "homepage comedy: unchanged in 20 ms; 2 pages, there is nothing more to load\n",
            asked: ["load-more homepage comedy wait"])
        result.outcome = .failed
        result.failure = "page 3: the origin answered 503"
        try await check(
            "load-more homepage comedy --wait", .success(result), status: .failure,
            talk: "freshetctl: homepage comedy: failed: page 3: the origin answered 503\n",
            asked: ["load-more homepage comedy wait"])
        result.outcome = .superseded
        try await check(
            "load-more homepage comedy --wait", .success(result), status: .failure,
            talk: "freshetctl: homepage comedy: superseded: a check of all began, after which the pages are those that "
                + "are configured\n", asked: ["load-more homepage comedy wait"])
    }

    @Test("the end has a status of its own; the places are named where one has to be")
    func refused() async throws {
        try await check(
            "load-more homepage", .failure(.nothingMore(name: "homepage", path: [])), status: .nothingMore,
            talk: "freshetctl: nothing more to load: 'homepage' is complete\n", asked: ["load-more homepage"])
        let more = MorePages(
            total: 3, places: [.init(path: ["comedy"], pages: 1), .init(path: ["news", "2"], pages: 2)])
        try await check(
            "load-more homepage", .failure(.severalBranches(name: "homepage", more: more)), status: .failure,
            talk:
                "freshetctl: 'homepage' has more at 3 places, name one: comedy (after 1 page), news 2 (after 2 pages) "
                + "and 1 others\n", asked: ["load-more homepage"])
        try await check(
            "load-more homepage comdy",
            .failure(.noSuchBranch(name: "homepage", path: ["comdy"], suggestion: "comedy")), status: .failure,
            talk: "freshetctl: no pages of 'homepage' are loaded on demand at 'comdy'; did you mean 'comedy'?\n",
            asked: ["load-more homepage comdy"])
        try await check(
            "load-more homepage", .failure(.cannotLoadMore(name: "homepage", reason: "it has no copy yet")),
            status: .failure, talk: "freshetctl: nothing more of 'homepage' can be loaded: it has no copy yet\n",
            asked: ["load-more homepage"])
        try await check(
            "load-more homepage", .failure(.tryLater(TryLaterHint(reason: "the network is not there"))),
            status: .tryLater, talk: "freshetctl: nothing was asked: the network is not there\n",
            asked: ["load-more homepage"])
    }

    @Test("a stranger may not")
    func rights() async throws {
        try await check(
            "load-more homepage", rights: strangerRights, status: .notPermitted,
            talk: "freshetctl: you may not do this; do it as root, or as a member of the group freshet ('adduser NAME "
                + "freshet')\n")
    }
}
