/* The table of a build without the dashboard (-Dweb=disabled): one page that says so. */
#include "server/pages.h"

static const char page[] =
    "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><base href=\"/\"><title>gpumgr</title></head>"
    "<body><main><h1>gpumgr runs, without a dashboard</h1><p>This server was built with -Dweb=disabled. Its API is at "
    "<a href=\"api/v1/openapi.json\">api/v1</a>, its metrics at <a href=\"metrics\">metrics</a>; <code>gpumgr "
    "top</code> "
    "shows the GPUs in a terminal.</p></main></body></html>\n";

const struct page_asset page_assets[] = {
    {"index.html", "text/html; charset=utf-8", "\"none\"", (const unsigned char *)page, sizeof page - 1, NULL, 0,
     false},
};
const size_t page_asset_count = 1;
