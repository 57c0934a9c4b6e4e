// swift-tools-version: 6.2
// Benchmarks of code inside the process, and one subject of those from outside (network-signal). A package of its own, so that what it compares with never becomes a
// dependency of Freshet.
import PackageDescription

let languageSettings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]

let package = Package(
    name: "benchmarks",
    dependencies: [
        .package(name: "freshet", path: ".."),
        .package(url: "https://github.com/OpenCombine/OpenCombine", exact: "0.14.0"),
        .package(url: "https://github.com/apple/swift-async-algorithms", exact: "1.1.4"),
    ],
    targets: [
        .target(name: "CMeasure"),
        .executableTarget(
            name: "network-signal",
            dependencies: [
                .product(name: "FreshetSignals", package: "freshet"),
                .product(name: "FreshetSystemSignals", package: "freshet"),
                .product(name: "FreshetEventLoop", package: "freshet"),
            ],
            swiftSettings: languageSettings),
        .executableTarget(
            name: "signals-bench",
            dependencies: [
                "CMeasure",
                .product(name: "FreshetSignals", package: "freshet"),
                .product(name: "FreshetTestKit", package: "freshet"),
                .product(name: "OpenCombine", package: "OpenCombine"),
                .product(name: "OpenCombineDispatch", package: "OpenCombine"),
                .product(name: "AsyncAlgorithms", package: "swift-async-algorithms"),
            ],
            swiftSettings: languageSettings),
    ],
    swiftLanguageModes: [.v6]
)
