/// A source and what is made of its answer: one node of a pipeline's tree. A pipeline of one request is one stage.
package struct StageDefinition: Hashable, Sendable {
    package var source: SourceDefinition
    /// How its pages are read; nil: it comes as one.
    package var pages: PagesDefinition?
    /// What programs are given of the answer.
    package var format: ContentFormat
    /// A jq program for the source's data alone; nil leaves it as it is. What stands around it may be used as `$name`.
    package var transform: String?
    /// What is fetched for each item of the data.
    package var each: EachDefinition?

    package init(
        _ source: SourceDefinition, pages: PagesDefinition? = nil, format: ContentFormat = .json,
        transform: String? = nil, each: EachDefinition? = nil
    ) {
        self.format = format
        self.source = source
        self.pages = pages
        self.transform = transform
        self.each = each
    }

    /// This stage and those below it, outermost first.
    package var all: [StageDefinition] {
        var stages = [self]
        if case .joined(let sources) = source { stages += sources.flatMap(\.stage.all) }
        return stages + (each?.stage.all ?? [])
    }

    /// The pipelines whose copies it reads, none twice.
    package var upstreams: [String] {
        var known: Set<String> = []
        return all.compactMap {
            if case .copy(let pipeline, _) = $0.source, known.insert(pipeline).inserted { pipeline } else { nil }
        }
    }

    /// How often copies of other pipelines are read for it; each in a fan-out counts as two.
    var copyReadings: Int {
        let own =
            switch source {
            case .copy: 1
            case .joined(let sources): sources.reduce(0) { $0 + $1.stage.copyReadings }
            case .http, .command, .file: 0
            }
        return own + (each.map { 2 * $0.stage.copyReadings } ?? 0)
    }

    /// One source that is asked once, whose answer may be anything.
    var isSingle: Bool {
        if case .joined = source { false } else { each == nil }
    }
}

/// How a content stands between bytes and jq programs.
package enum ContentFormat: String, CaseIterable, Hashable, Sendable {
    /// As it is: JSON texts.
    case json
    /// All of it is one text in UTF-8: to a program one string.
    case text
}

/// A fan-out: one branch for each item of a list, whose results take the items' places.
package struct EachDefinition: Hashable, Sendable {
    /// What a failing branch shows.
    package enum OnError: String, CaseIterable, Hashable, Sendable {
        /// What it delivered last; `null` if that is nothing.
        case previous
        case null
        /// Nothing: the list is shorter.
        case omit
        /// The run fails.
        case fail
    }

    /// When readers see what the branches deliver.
    package enum Publish: String, CaseIterable, Hashable, Sendable {
        /// When all are in.
        case complete
        /// As they come. In the place of one that is not in yet stands what it delivered last.
        case progressive
    }

    /// An item's name in what stands below: `{topic.id}` in a URL, `$topic` in a program.
    package var name: String
    /// A jq program that tells the items apart: a branch is known by its key, wherever its item stands.
    package var key: String
    /// How many branches run at once, at least one.
    package var concurrency: Int
    package var onError: OnError
    /// Of the outermost fan-out only.
    package var publish: Publish
    /// URLs that come from the items themselves lead to the origin of the list's own URL only.
    package var sameOrigin: Bool
    /// What each branch does.
    package var stage: StageDefinition {
        get {
            switch box {
            case .stage(let stage): stage
            }
        }
        set { box = .stage(newValue) }
    }
    private var box: Box

    /// A stage may hold a fan-out, and a fan-out holds a stage.
    private indirect enum Box: Hashable, Sendable {
        case stage(StageDefinition)
    }

    /// The item itself, if nothing is configured: good for texts and numbers.
    package static let defaultKey = "."
    package static let defaultConcurrency = 8
    /// More branches at once than any origin likes.
    package static let maximumConcurrency = 64
    /// The most items of a list: each is a request.
    package static let maximumItems = 10_000
    /// The longest key, in bytes: it is shown wherever its branch fails.
    package static let maximumKeyBytes = 1024
    /// How deep fan-outs may stand within each other: the numbers of their requests multiply.
    package static let maximumDepth = 3

    package init(
        as name: String, key: String = EachDefinition.defaultKey, concurrency: Int = EachDefinition.defaultConcurrency,
        onError: OnError = .previous, publish: Publish = .complete, sameOrigin: Bool = true, _ stage: StageDefinition
    ) {
        self.publish = publish
        self.sameOrigin = sameOrigin
        self.name = name
        self.key = key
        self.concurrency = concurrency
        self.onError = onError
        box = .stage(stage)
    }

    /// The places in the branches' URLs and arguments that an item fills, none twice.
    package var places: [URLTemplate.Place] {
        var known: Set<URLTemplate.Place> = []
        return stage.all.flatMap(\.source.places).filter { $0.name == name && known.insert($0).inserted }
    }
}
