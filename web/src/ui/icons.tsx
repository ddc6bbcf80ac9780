// Icons: one path each, drawn in the colour of the text.
const kPaths = {
  overview: "M3 12h4l2.500-7 4 14 2.500-7H21",
  topics: "M4 6h16M4 12h16M4 18h10",
  jobs: "M12 7v5l3.500 2M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0z",
  leases: "M7 11V8a5 5 0 0 1 10 0v3M5 11h14v9H5zM12 15v2",
  dead: "M12 8.500v4.500M12 16.500v.01M10.300 4 2.600 17.500A2 2 0 0 0 4.300 20.500h15.400a2 2 0 0 0 1.700-3L13.700 4a2 2 0 0 0-3.400 0z",
  deliveries: "M21 3 10 14M21 3l-7 18-4-7-7-4z",
  nodes: "M4 4h16v6H4zM4 14h16v6H4zM8 7v.01M8 17v.01",
  alerts: "M18 9a6 6 0 1 0-12 0c0 6-2.500 7.500-2.500 7.500h17S18 15 18 9M10 20.500a2.300 2.300 0 0 0 4 0",
  clock: "M5 4 3 6M19 4l2 2M12 9v4l2.500 1.500M20 13a8 8 0 1 1-16 0 8 8 0 0 1 16 0z",
  search: "M20 20l-4.500-4.500M17.500 11a6.500 6.500 0 1 1-13 0 6.500 6.500 0 0 1 13 0z",
  pause: "M8 5v14M16 5v14",
  play: "M7 4.500v15l12-7.500z",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  close: "M6 6l12 12M18 6 6 18",
  check: "M4.500 12.500 10 18 20 6.500",
  reload: "M20 11a8 8 0 1 0-2 6M20 4v7h-7",
  moon: "M20 14.500A8.500 8.500 0 0 1 9.500 4 8.500 8.500 0 1 0 20 14.500z",
  sun: "M12 4V2M12 22v-2M4 12H2M22 12h-2M6 6 4.800 4.800M19.200 19.200 18 18M6 18l-1.200 1.200M19.200 4.800 18 6M16 12a4 4 0 1 1-8 0 4 4 0 0 1 8 0z",
  auto: "M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18",
  menu: "M4 7h16M4 12h16M4 17h16",
  plus: "M12 5v14M5 12h14",
  download: "M12 4v11M7 11l5 5 5-5M4 20h16",
  up: "M12 19V5M6 11l6-6 6 6",
  down: "M12 5v14M6 13l6 6 6-6",
  help: "M9.200 9.200a3 3 0 1 1 4.300 2.700c-1 .5-1.500 1-1.500 2.100M12 17.500v.01M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0z",
  logout: "M15 4h4v16h-4M10 8l-4 4 4 4M6 12h10",
  eye: "M2.500 12S6 5.500 12 5.500 21.500 12 21.500 12 18 18.500 12 18.500 2.500 12 2.500 12zM15 12a3 3 0 1 1-6 0 3 3 0 0 1 6 0z",
} as const;

export type IconName = keyof typeof kPaths;

export function Icon({name}: {name: IconName}) {
  return (
    <svg class="icon" viewBox="0 0 24 24" width="16" height="16" fill="none" stroke="currentColor" stroke-width="1.8"
         stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d={kPaths[name]} />
    </svg>
  );
}
