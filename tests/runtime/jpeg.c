/* Writes a JPEG file of raw pixels: jpeg WIDTH HEIGHT CHANNELS QUALITY [progressive] < pixels > file. Four channels are CMYK. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

int main(int argc, char **argv) {
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr error;
    info.err = jpeg_std_error(&error);
    jpeg_create_compress(&info);
    jpeg_stdio_dest(&info, stdout);
    info.image_width = (JDIMENSION)atoi(argv[1]);
    info.image_height = (JDIMENSION)atoi(argv[2]);
    info.input_components = atoi(argv[3]);
    info.in_color_space = info.input_components == 1 ? JCS_GRAYSCALE : info.input_components == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, atoi(argv[4]), TRUE);
    if (argc > 5)
        jpeg_simple_progression(&info);
    for (int i = 0; i < info.num_components; i++) /* colours as fine as brightness */
        info.comp_info[i].h_samp_factor = info.comp_info[i].v_samp_factor = 1;
    jpeg_start_compress(&info, TRUE);
    size_t size = info.image_width * (size_t)info.input_components;
    JSAMPROW row = malloc(size);
    while (info.next_scanline < info.image_height && fread(row, 1, size, stdin) == size)
        jpeg_write_scanlines(&info, &row, 1);
    jpeg_finish_compress(&info);
    free(row);
    return 0;
}
