// Redraws the charts that the server drew, with axes and one cursor for both.
"use strict";

(() => {
  const HEIGHT = 160;
  const drawn = new Set();

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }
  function short(value) {
    for (const [size, unit] of [[1e9, " G"], [1e6, " M"], [1e3, " k"]]) {
      if (value >= size) return `${+(value / size).toFixed(1)}${unit}`;
    }
    return String(+value.toFixed(value < 10 ? 1 : 0));
  }
  function time(seconds, span, step = 60) {
    const at = new Date(seconds * 1000);
    const clock = at.toLocaleTimeString([], {
      hour: "2-digit", minute: "2-digit", second: step < 60 ? "2-digit" : undefined, hour12: false,
    });
    return span > 86400 ? `${at.getDate()}.${at.getMonth() + 1}. ${clock}` : clock;
  }

  function axis(side, format, span) {
    return {
      side,
      stroke: colour("--muted"),
      font: "11px Inter Variable, system-ui, sans-serif",
      grid: { show: side === 3, stroke: colour("--border"), width: 1 },
      ticks: { show: false },
      size: side === 3 ? 44 : 24,
      gap: 6,
      space: side === 3 ? 44 : span > 86400 ? 96 : 72,
      values: (_, marks, axis, space, step) => marks.map((mark) => format(mark, step)),
    };
  }

  function draw(place, data, span, labels, unit) {
    const to = data.at[data.at.length - 1];
    const from = Math.max(to - span, Math.min(data.at[0], to - span / 30));
    const tip = document.createElement("div");
    tip.className = "chart-tip";
    tip.hidden = true;
    const chart = new uPlot({
      width: place.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      padding: [8, span > 86400 ? 40 : 20, 0, 0], // half of the last label
      cursor: { sync: { key: "replicator" }, drag: { x: false, y: false }, points: { size: 6 } },
      scales: {
        x: { time: true, range: () => [from, to] },
        y: { range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1] },
      },
      axes: [axis(2, (v, step) => time(v, span, step), span), axis(3, (v) => short(v), span)],
      series: [{}, ...labels.map((label, index) => ({
        label,
        stroke: colour(index ? "--border-strong" : "--accent"),
        width: 2,
        points: { show: false },
      }))],
      hooks: {
        setCursor: [(plot) => {
          const index = plot.cursor.idx;
          tip.hidden = index === null || index === undefined || plot.cursor.left < 0;
          if (tip.hidden) return;
          tip.replaceChildren(...[
            time(plot.data[0][index], span),
            ...labels.map((label, n) => {
              const value = plot.data[n + 1][index];
              return `${label}: ${value === null || value === undefined ? "–" : short(value) + unit}`;
            }),
          ].map((text) => Object.assign(document.createElement("div"), { textContent: text })));
          const isRight = plot.cursor.left > plot.over.clientWidth / 2;
          tip.style.left = isRight ? "" : `${plot.cursor.left + 60}px`;
          tip.style.right = isRight ? `${plot.over.clientWidth - plot.cursor.left + 16}px` : "";
        }],
      },
    }, [data.at, ...data.columns], place);
    place.querySelector(".lines").remove();
    place.append(tip);
    drawn.add(chart);
    return chart;
  }

  function start() {
    for (const chart of drawn) if (!chart.root.isConnected) { chart.destroy(); drawn.delete(chart); }
    const pair = document.querySelector("[data-charts]");
    const source = document.getElementById("charts-data");
    if (!pair || !source || pair.dataset.isDrawn || typeof uPlot === "undefined") return;
    const all = JSON.parse(source.textContent);
    if (all.at.length < 2) return;
    pair.dataset.isDrawn = "true";
    const span = Number(pair.dataset.charts);
    for (const place of pair.querySelectorAll("[data-chart]")) {
      const labels = place.dataset.labels.split(",");
      draw(place, { at: all.at, columns: all[place.dataset.chart] }, span, labels, place.dataset.unit);
    }
  }
  function resize() {
    for (const chart of drawn) {
      const width = chart.root.parentElement ? chart.root.parentElement.clientWidth : 0;
      if (width) chart.setSize({ width, height: HEIGHT });
    }
  }
  document.addEventListener("htmx:afterSettle", start);
  window.addEventListener("resize", resize);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => location.reload());
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
