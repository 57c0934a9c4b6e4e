// swift-tools-version: 6.2
// docs/architecture.md explains the targets and their dependencies. Scripts/check-layers compares them with
// Scripts/layers.txt, so that a new dependency is a decision and not an accident.
import PackageDescription

let argumentParser: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")
let mustache: Target.Dependency = .product(name: "Mustache", package: "swift-mustache")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
/// The targets whose parsers of untrusted bytes are fuzzed.
let fuzzed: [Target.Dependency] = [
    "FreshetCache", "FreshetConfiguration", "FreshetControl", "FreshetEmitters", "FreshetFleet", "FreshetHelper",
    "FreshetModel",
    "FreshetNATS", "FreshetPipelines", "FreshetSystemSignals", "FreshetTemplate", "FreshetUnpack", "FreshetVarlink",
    "ConfigurationTestSupport",
]

let package = Package(
    name: "freshet",
    products: [
        .library(name: "FreshetSignals", targets: ["FreshetSignals"]),
        .library(name: "FreshetEventLoop", targets: ["FreshetEventLoop"]),
        .library(name: "FreshetSystemSignals", targets: ["FreshetSystemSignals"]),
        .library(name: "FreshetSystemd", targets: ["FreshetSystemd"]),
        .library(name: "FreshetVarlink", targets: ["FreshetVarlink"]),
        .library(name: "FreshetNATS", targets: ["FreshetNATS"]),
        .library(name: "FreshetTestKit", targets: ["FreshetTestKit"]),
        .executable(name: "freshetd", targets: ["freshetd"]),
        .executable(name: "freshetctl", targets: ["freshetctl"]),
        .executable(name: "freshet-template", targets: ["freshet-template"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/hummingbird-project/swift-mustache", from: "2.1.1"),
    ],
    targets: [
        // C libraries of the distribution; each target is only a module map.
        .systemLibrary(name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        .systemLibrary(name: "CNetlink", pkgConfig: "libnl-3.0", providers: [.apt(["libnl-3-dev"])]),
        .systemLibrary(name: "CJQ", providers: [.apt(["libjq-dev"])]),
        .systemLibrary(name: "CYAML", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CExpat", pkgConfig: "expat", providers: [.apt(["libexpat1-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CLinux"),
        // libcurl is loaded when it is first needed; it is not linked.
        .target(name: "CCurl"),

        .target(name: "FreshetModel"),
        .target(name: "FreshetSignals"),
        .target(name: "FreshetEventLoop", dependencies: ["CLinux"]),
        .target(
            name: "FreshetSystemSignals",
            dependencies: ["FreshetSignals", "FreshetEventLoop", "CNetlink", "CSystemd"]),
        .target(name: "FreshetSystemd", dependencies: ["CSystemd", "CLinux", logging]),
        .target(name: "FreshetVarlink", dependencies: ["FreshetEventLoop"]),
        .target(name: "FreshetNATS", dependencies: ["FreshetEventLoop", "FreshetVarlink", "CCurl", "CCrypto"]),
        .target(
            name: "FreshetFleet", dependencies: ["FreshetModel", "FreshetEventLoop", "FreshetNATS", "FreshetVarlink"]),
        .target(name: "FreshetPipelines", dependencies: ["FreshetModel", "FreshetSignals"]),
        .target(name: "FreshetHelper", dependencies: ["CLinux"]),
        .target(name: "FreshetJQ", dependencies: ["FreshetHelper", "CJQ", "CExpat", "CZlib", "CCrypto"]),
        // libarchive is loaded by the helper process; it is not linked.
        .target(name: "FreshetUnpack", dependencies: ["FreshetHelper", "CZlib"]),
        // It imports Foundation through swift-mustache, so the daemon does not link it.
        .target(name: "FreshetTemplate", dependencies: ["FreshetHelper", "CLinux", mustache]),
        .target(
            name: "FreshetEmitters",
            dependencies: [
                "FreshetModel", "FreshetPipelines", "FreshetHelper", "FreshetJQ", "FreshetUnpack", "FreshetEventLoop",
                "FreshetVarlink", "CCurl", "CCrypto", "CZlib",
            ]),
        .target(name: "FreshetCache", dependencies: ["FreshetModel", "FreshetSignals", "CSQLite", "CCrypto"]),
        .target(name: "FreshetConfiguration", dependencies: ["FreshetModel", "FreshetPipelines", "CYAML"]),
        .target(
            name: "FreshetControl", dependencies: ["FreshetModel", "FreshetVarlink"],
            resources: [.embedInCode("io.freshet.Control.varlink")]),
        .target(name: "FreshetRender"),
        .target(
            name: "FreshetReplay",
            dependencies: ["FreshetModel", "FreshetSignals", "FreshetPipelines", "FreshetControl"]),
        .target(
            name: "FreshetDaemon",
            dependencies: [
                "FreshetModel", "FreshetSignals", "FreshetEventLoop", "FreshetSystemSignals", "FreshetSystemd",
                "FreshetVarlink", "FreshetPipelines", "FreshetHelper", "FreshetJQ", "FreshetEmitters", "FreshetCache",
                "FreshetConfiguration", "FreshetFleet", "FreshetNATS", "FreshetReplay",
                "FreshetControl", logging,
            ]),
        .target(
            name: "FreshetCommands",
            dependencies: [
                "FreshetModel", "FreshetControl", "FreshetVarlink", "FreshetEventLoop", "FreshetRender", argumentParser,
            ]),
        .executableTarget(
            name: "freshetd",
            dependencies: [
                "FreshetDaemon", "FreshetEventLoop", "FreshetJQ", "FreshetReplay", "FreshetUnpack", argumentParser,
            ]),
        .executableTarget(name: "freshetctl", dependencies: ["FreshetCommands"]),
        .executableTarget(name: "freshet-template", dependencies: ["FreshetHelper", "FreshetTemplate"]),
        .target(name: "FreshetTestKit", dependencies: ["FreshetSignals"]),

        // The examples of the articles of FreshetSignals.
        .target(name: "SignalExamples", dependencies: ["FreshetSignals"], path: "Examples/Signals"),
        // The example of the article of FreshetSystemSignals.
        .target(
            name: "SystemExamples", dependencies: ["FreshetSystemSignals", "FreshetSignals", "FreshetEventLoop"],
            path: "Examples/System"),

        // Helpers of all tests, for waiting and for temporary files.
        .target(name: "TestSupport", path: "Tests/Support/Basics"),
        // Helpers that run blocking code on their own threads.
        .target(name: "ThreadTestSupport", dependencies: ["FreshetEventLoop"], path: "Tests/Support/Threads"),
        // A scripted daemon behind a real control socket.
        .target(
            name: "ControlTestSupport",
            dependencies: ["FreshetControl", "FreshetVarlink", "FreshetEventLoop", "TestSupport", "ThreadTestSupport"],
            path: "Tests/Support/Control"),
        // A real nats-server.
        .target(
            name: "NATSTestSupport",
            dependencies: ["FreshetNATS", "FreshetEventLoop", "TestSupport", "ThreadTestSupport"],
            path: "Tests/Support/NATS"),
        // The files of a configuration, in memory.
        .target(
            name: "ConfigurationTestSupport", dependencies: ["FreshetConfiguration"],
            path: "Tests/Support/Configuration"),
        // The dependencies of the engine as scripts: clock, origins, disk.
        .target(
            name: "WorldTestSupport",
            dependencies: ["FreshetModel", "FreshetPipelines", "FreshetSignals", "FreshetTestKit"],
            path: "Tests/Support/World"),

        // A process whose boot clock really jumps.
        .executableTarget(
            name: "SleepWitness", dependencies: ["FreshetSystemSignals", "FreshetSignals", "FreshetEventLoop"],
            path: "Tests/Support/SleepWitness"),
        // A process that enters the sandbox of a jq helper, and then tries forbidden operations.
        .executableTarget(
            name: "SandboxWitness", dependencies: ["FreshetHelper", "FreshetJQ", "CLinux"],
            path: "Tests/Support/SandboxWitness"),

        // Tests: one folder for each ring (CONTRIBUTING.md). The system ring is shell scripts in Tests/System.
        .testTarget(
            name: "FreshetSignalsTests", dependencies: ["FreshetSignals", "FreshetTestKit"],
            path: "Tests/Unit/FreshetSignalsTests"),
        .testTarget(
            name: "FreshetEventLoopTests", dependencies: ["FreshetEventLoop", "CLinux"],
            path: "Tests/Unit/FreshetEventLoopTests"),
        .testTarget(
            name: "FreshetSystemSignalsTests",
            // CSystemd: a test is another program on the bus. SleepWitness: a test runs it.
            dependencies: [
                "FreshetSystemSignals", "FreshetSignals", "FreshetEventLoop", "FreshetTestKit", "CSystemd",
                "SleepWitness",
            ],
            path: "Tests/Unit/FreshetSystemSignalsTests"),
        .testTarget(
            name: "FreshetSystemdTests", dependencies: ["FreshetSystemd", "CLinux", logging],
            path: "Tests/Unit/FreshetSystemdTests"),
        .testTarget(
            name: "FreshetVarlinkTests", dependencies: ["FreshetVarlink", "FreshetEventLoop", "ThreadTestSupport"],
            path: "Tests/Unit/FreshetVarlinkTests"),
        .testTarget(
            name: "FreshetNATSTests",
            dependencies: ["FreshetNATS", "FreshetEventLoop", "NATSTestSupport", "ThreadTestSupport"],
            path: "Tests/Unit/FreshetNATSTests",
            // Scripts/setup reads it.
            exclude: ["requirements.txt"]),
        .testTarget(
            name: "FreshetFleetTests",
            dependencies: ["FreshetFleet", "FreshetEventLoop", "FreshetModel", "FreshetNATS", "NATSTestSupport"],
            path: "Tests/Unit/FreshetFleetTests"),
        .testTarget(
            name: "FreshetPipelinesTests",
            dependencies: [
                "FreshetModel", "FreshetPipelines", "FreshetSignals", "FreshetTestKit", "WorldTestSupport",
            ],
            path: "Tests/Unit/FreshetPipelinesTests"),
        .testTarget(
            name: "FreshetJQTests", dependencies: ["FreshetHelper", "FreshetJQ"], path: "Tests/Unit/FreshetJQTests"),
        .testTarget(
            name: "FreshetUnpackTests", dependencies: ["FreshetUnpack", "FreshetHelper"],
            path: "Tests/Unit/FreshetUnpackTests"),
        .testTarget(
            name: "FreshetTemplateTests", dependencies: ["FreshetTemplate", "FreshetHelper"],
            path: "Tests/Unit/FreshetTemplateTests"),
        .testTarget(
            name: "FreshetEmittersTests",
            // freshetd: the jq helper is the daemon's own executable. SandboxWitness: a test runs it.
            dependencies: [
                "FreshetEmitters", "FreshetModel", "FreshetPipelines", "FreshetEventLoop", "FreshetHelper", "FreshetJQ",
                "FreshetUnpack", "freshetd", "freshet-template", "SandboxWitness", "CZlib",
            ],
            path: "Tests/Unit/FreshetEmittersTests"),
        .testTarget(
            name: "FreshetCacheTests",
            dependencies: ["FreshetCache", "FreshetModel", "FreshetSignals", "FreshetEventLoop"],
            path: "Tests/Unit/FreshetCacheTests"),
        .testTarget(
            name: "FreshetConfigurationTests",
            dependencies: ["ConfigurationTestSupport", "FreshetConfiguration", "FreshetModel", "FreshetPipelines"],
            path: "Tests/Unit/FreshetConfigurationTests"),
        .testTarget(
            name: "FreshetControlTests",
            dependencies: [
                "FreshetControl", "FreshetEventLoop", "FreshetModel", "FreshetVarlink", "ControlTestSupport",
                "ThreadTestSupport",
            ],
            path: "Tests/Unit/FreshetControlTests"),
        .testTarget(
            name: "FreshetReplayTests",
            dependencies: [
                "FreshetReplay", "FreshetControl", "FreshetModel", "FreshetPipelines", "FreshetConfiguration",
                "ConfigurationTestSupport",
            ],
            path: "Tests/Unit/FreshetReplayTests"),
        .testTarget(name: "FreshetRenderTests", dependencies: ["FreshetRender"], path: "Tests/Unit/FreshetRenderTests"),
        .testTarget(
            name: "FreshetCommandsTests",
            // FreshetTestKit: the notation of marble diagrams.
            dependencies: [
                "FreshetCommands", "FreshetControl", "FreshetModel", "FreshetRender", "FreshetTestKit",
                "ControlTestSupport", argumentParser,
            ],
            path: "Tests/Unit/FreshetCommandsTests",
            // Tests read these files by their paths.
            exclude: ["Golden", "Pictures/Golden"]),
        .testTarget(
            name: "SignalMarbles", dependencies: ["FreshetSignals", "FreshetTestKit"], path: "Tests/Marbles"),
        .testTarget(
            name: "SignalExamplesTests",
            dependencies: [
                "SignalExamples", "SystemExamples", "FreshetSystemSignals", "FreshetSignals", "FreshetEventLoop",
                "FreshetTestKit",
            ],
            path: "Tests/Examples"),
        .testTarget(
            name: "DaemonSimulation",
            dependencies: [
                "FreshetDaemon", "FreshetModel", "FreshetPipelines", "FreshetSignals", "FreshetTestKit",
                "FreshetConfiguration",
                "FreshetSystemSignals", "FreshetEventLoop", "ConfigurationTestSupport", "WorldTestSupport",
            ],
            path: "Tests/Simulation"),
        // The targets of the fuzzer, with their seeds and mutations of them (CONTRIBUTING.md, Fuzzing).
        .testTarget(
            name: "FuzzTests", dependencies: fuzzed, path: "Tests/Fuzz", exclude: ["Corpus", "Program", "README.md"],
            sources: ["Targets", "Smoke"]),
        .testTarget(
            name: "FreshetDaemonTests",
            dependencies: [
                "FreshetDaemon", "FreshetModel", "FreshetPipelines", "FreshetSystemSignals", "FreshetSignals",
                "FreshetEventLoop",
                "FreshetCache", "FreshetConfiguration", "FreshetControl", "FreshetFleet", "FreshetSystemd",
                "ThreadTestSupport", "WorldTestSupport",
                logging,
            ],
            path: "Tests/Unit/FreshetDaemonTests"),
    ],
    swiftLanguageModes: [.v6]
)

/// The language settings of all targets.
var languageSettings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]
// `make test` and CI set FRESHET_STRICT: warnings are errors.
if Context.environment["FRESHET_STRICT"] != nil {
    languageSettings.append(.treatAllWarnings(as: .error))
}
for target in package.targets where target.type == .test { target.dependencies.append("TestSupport") }
for target in package.targets where target.type != .system {
    target.swiftSettings = (target.swiftSettings ?? []) + languageSettings
}

// `make fuzz` sets FRESHET_FUZZER: the targets of Tests/Fuzz are part of a program instead of the tests.
if Context.environment["FRESHET_FUZZER"] != nil {
    package.targets.removeAll { $0.name == "FuzzTests" }
    package.targets.append(
        .executableTarget(
            name: "freshet-fuzz", dependencies: fuzzed, path: "Tests/Fuzz", exclude: ["Corpus", "Smoke", "README.md"],
            sources: ["Targets", "Program"], swiftSettings: languageSettings))
}

// `make docs` sets FRESHET_DOCS: other builds do not need the plug-in.
if Context.environment["FRESHET_DOCS"] != nil {
    package.dependencies.append(.package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.5.0"))
}
