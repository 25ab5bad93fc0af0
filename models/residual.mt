# The basic block of residual networks. Names of weights are those of torchvision's ResNets.
fn basic(x, width, stride = 1) {
  conv1 = conv2d(x, width, 3, stride = stride, padding = 1, bias = false)
  bn1   = batch_norm(conv1)
  conv2 = conv2d(relu(bn1), width, 3, padding = 1, bias = false)
  bn2   = batch_norm(conv2)
  if stride != 1 or size(x, 0) != width {
    downsample = batch_norm(conv2d(x, width, 1, stride = stride, bias = false))
    return relu(bn2 + downsample)
  } else {
    return relu(bn2 + x)
  }
}
